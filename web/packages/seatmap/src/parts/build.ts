type Child = Node | string | null | undefined | false;
type Attributes = Readonly<Record<string, string | number | boolean | null | undefined | ((event: never) => void)>>;

/** Makes an element. Never through markup or style attributes: a page's content policy may forbid both. */
export function build<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else setAttribute(element, name, value);
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** true is the attribute alone, false and null take it away. Left as it is where nothing changes. */
export function setAttribute(element: Element, name: string, value: string | number | boolean | null | undefined): void {
  if (value === null || value === undefined || value === false) {
    element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

const SVG = "http://www.w3.org/2000/svg";

/** A line drawing of 24 units. */
export function icon(path: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

export const ICONS = {
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  whole: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  lasso: "M12 4c5 0 8.5 2.3 8.5 5.5S17 15 12 15c-1.500 0-3-.2-4.200-.6M12 4C7 4 3.500 6.300 3.500 9.500c0 2 1.500 3.700 4.300 4.800M7.800 14.300c-1.800 0-2.800 1-2.800 2.200s1 2 2.200 2 2.100-.9 2.100-2-.700-1.800-1.500-2.200zM7 18.500c.2 1.200 1 2 2.500 2.500",
  map: "M9 4 3.500 6.500v13L9 17l6 2.500 5.500-2.500V4L15 6.500zM9 4v13M15 6.500v13",
  list: "M9 6h11M9 12h11M9 18h11M4.500 6h.01M4.500 12h.01M4.500 18h.01",
  open: "m8 10 4 4 4-4",
} as const;
