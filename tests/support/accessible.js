// What keeps people from reading a page: a list of findings, empty where there is none.
// Contrast as WCAG 2.2 has it (1.4.3): 4.5 to 1, and 3 to 1 for large text.
() => {
  const wrong = [];
  const shown = (e) => {
    const box = e.getBoundingClientRect();
    const style = getComputedStyle(e);
    return box.width > 1 && box.height > 1 && style.visibility !== "hidden" && +style.opacity > 0.1;
  };

  if (!document.documentElement.lang) wrong.push("the page has no language");
  const tops = document.querySelectorAll("h1").length;
  if (tops !== 1) wrong.push(`the page has ${tops} headings of the first level`);
  let last = 0;
  for (const head of document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")) {
    const level = +head.tagName[1];
    if (level > last + 1) wrong.push(`${head.tagName} follows a heading of level ${last}: ${head.textContent}`);
    last = level;
  }
  for (const image of document.querySelectorAll("img")) {
    if (!image.hasAttribute("alt")) wrong.push(`${image.src} has no alternative text`);
  }
  for (const e of document.querySelectorAll("a[href], button, input, select, textarea, label.md-header__button")) {
    if (!shown(e)) continue;
    const inside = [...e.querySelectorAll("img")].map((image) => image.alt).join("");
    const labels = [...(e.labels ?? [])].map((label) => label.textContent + label.title).join("");
    const name = e.ariaLabel || e.title || e.textContent.trim() || labels.trim() || e.placeholder || inside;
    if (!name) wrong.push(`nothing names ${e.outerHTML.slice(0, 100)}`);
  }
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth + 1) wrong.push(`the page is ${root.scrollWidth} pixels wide`);

  const colour = (text) => {
    const found = text.match(/[\d.]+/g).map(Number);
    return found.length < 4 ? [...found.slice(0, 3), 1] : found;
  };
  const over = (top, under) => under.map((value, i) => top[i] * top[3] + value * (1 - top[3]));
  const light = (values) => {
    const part = values.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
  };
  const ground = (e) => {
    const layers = [];
    for (let x = e; x; x = x.parentElement) {
      const found = colour(getComputedStyle(x).backgroundColor);
      if (found[3] > 0) layers.push(found);
      if (found[3] === 1) break;
    }
    return layers.reduceRight((under, top) => over(top, under), [255, 255, 255]);
  };
  const faint = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const e = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !shown(e) || e.closest("script, style, noscript, svg")) continue;
    let alpha = 1;
    for (let x = e; x; x = x.parentElement) alpha *= +getComputedStyle(x).opacity;
    const style = getComputedStyle(e);
    const ink = colour(style.color);
    ink[3] *= alpha;
    if (ink[3] < 0.1) continue;
    const under = ground(e);
    const [more, less] = [light(over(ink, under)), light(under)].sort((a, b) => b - a);
    const ratio = (more + 0.05) / (less + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) {
      faint.add(`contrast ${ratio.toFixed(2)} of ${e.tagName}.${e.className}: ${style.color} on ${under.map(Math.round)}`);
    }
  }
  return [...wrong, ...faint];
}
