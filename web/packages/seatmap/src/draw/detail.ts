/** What is drawn at which size. In pixels of the device where it is about drawing, of CSS where it is about reading. */

/** Below this a seat is less than a dot: sections are filled with how full they are. */
export const SEATS_FROM_DEVICE_PX = 1.5;
export const NUMBERS_FROM_CSS_PX = 15;
/** Above this, names of sections would cover the seats that are looked at. */
export const SECTION_NAMES_TO_CSS_PX = 8;
export const ROW_NAMES_FROM_CSS_PX = 9;

export type Detail = "far" | "middle" | "near";

export function detailAt(diameterCss: number, ratio: number): Detail {
  if (diameterCss * ratio < SEATS_FROM_DEVICE_PX) return "far";
  return diameterCss >= NUMBERS_FROM_CSS_PX ? "near" : "middle";
}
