import { cssOf, inkOn } from "./colour.js";
import { ROW_NAMES_FROM_CSS_PX, SEATS_FROM_DEVICE_PX, SECTION_NAMES_TO_CSS_PX } from "./detail.js";
import { SEAT_FONT } from "./glyphs.js";
import type { Frame, Paper, Scene, SectionPaint } from "./scene.js";

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** Of a section's box, a name may cover so much where seats are drawn. */
const MOST_COVERED = 0.05;

/** Writes what is not on seats: names of sections, of rows, of general admission, and the stage. */
export function letter(context: Context, scene: Scene, frame: Frame, sections: readonly SectionPaint[], paper: Paper): void {
  const diameterCss = (scene.radius * 2 * frame.scale) / frame.ratio;
  if (scene.focalPoint) writeStage(context, scene, frame, paper);
  if (diameterCss >= ROW_NAMES_FROM_CSS_PX) writeRows(context, scene, frame, paper, diameterCss);
  writeSections(context, scene, frame, sections, paper, diameterCss);
}

function writeStage(context: Context, scene: Scene, frame: Frame, paper: Paper): void {
  const { ratio } = frame;
  const at = { x: scene.focalPoint!.x * frame.scale + frame.x, y: scene.focalPoint!.y * frame.scale + frame.y };
  const height = Math.min(Math.max(scene.spacing * 1.6 * frame.scale, 18 * ratio), 44 * ratio);
  context.font = `600 ${Math.round(height * 0.5)}px ${SEAT_FONT}`;
  const width = Math.max(context.measureText(paper.stageWords).width + height * 1.6, Math.min(scene.spacing * 9 * frame.scale, 320 * ratio));
  if (at.x + width < 0 || at.x - width > frame.width || at.y + height < 0 || at.y - height > frame.height) return;
  context.fillStyle = paper.stage;
  context.beginPath();
  context.roundRect(at.x - width / 2, at.y - height / 2, width, height, height * 0.28);
  context.fill();
  centred(context, paper.stageWords, at.x, at.y + height * 0.03, paper.stageInk);
}

function writeRows(context: Context, scene: Scene, frame: Frame, paper: Paper, diameterCss: number): void {
  const size = Math.round(Math.min(diameterCss * 0.62, 20) * frame.ratio);
  context.font = `600 ${size}px ${SEAT_FONT}`;
  for (const { name, before, behind } of scene.rows) {
    for (const end of [before, behind]) {
      const x = end.x * frame.scale + frame.x, y = end.y * frame.scale + frame.y;
      if (x < -size || y < -size || x > frame.width + size || y > frame.height + size) continue;
      centred(context, name, x, y, paper.faintInk);
    }
  }
}

/** On a filled section straight onto it; over seats on a plate, and only where it covers little of them. */
function writeSections(
  context: Context, scene: Scene, frame: Frame, sections: readonly SectionPaint[], paper: Paper, diameterCss: number,
): void {
  const { ratio } = frame;
  const seatsShown = diameterCss * ratio >= SEATS_FROM_DEVICE_PX;
  scene.areas.forEach((area, n) => {
    const paint = sections[n];
    const overSeats = seatsShown && !area.standing;
    if (!paint || (overSeats && diameterCss > SECTION_NAMES_TO_CSS_PX)) return;
    const x = area.label.x * frame.scale + frame.x, y = area.label.y * frame.scale + frame.y;
    const width = (area.box.right - area.box.left) * frame.scale, height = (area.box.bottom - area.box.top) * frame.scale;
    if (x + width < 0 || x - width > frame.width || y + height < 0 || y - height > frame.height) return;
    const room = Math.min(area.room * 2 * frame.scale * (area.standing ? 0.94 : overSeats ? 1.4 : 0.98), width);
    const size = Math.round(Math.min(Math.max(Math.min(room / 4, height / 4), 10 * ratio), (area.standing ? 18 : 15) * ratio));
    const small = Math.round(Math.max(size * 0.8, 9.5 * ratio));
    const nameWidth = measured(context, paint.name, size, 650);
    // A name wider than its section would be taken for the neighbour's.
    if (size * 1.2 > height || nameWidth > room) return;
    const fits = (detail: string) => {
      if (detail === "" || size * 2.6 > height) return false;
      const wide = Math.max(nameWidth, measured(context, detail, small, 500));
      return wide <= room && (!overSeats || wide * size * 2.6 < width * height * MOST_COVERED);
    };
    const detail = fits(paint.detail) ? paint.detail : fits(paint.shortDetail) ? paint.shortDetail : "";
    if (overSeats && nameWidth * size * 1.8 > width * height * MOST_COVERED) return;
    const ink = overSeats ? paper.ink : cssOf(inkOn(paint.farFill));
    if (overSeats) {
      const wide = Math.max(nameWidth, detail ? measured(context, detail, small, 500) : 0) + size * 1.1;
      const tall = (detail ? size * 1.15 + small * 1.15 : size * 1.2) + size * 0.5;
      context.fillStyle = paper.plate;
      context.beginPath();
      context.roundRect(x - wide / 2, y - tall / 2, wide, tall, size * 0.5);
      context.fill();
    }
    context.font = `650 ${size}px ${SEAT_FONT}`;
    centred(context, paint.name, x, detail ? y - small * 0.62 : y, ink);
    if (!detail) return;
    context.font = `500 ${small}px ${SEAT_FONT}`;
    centred(context, detail, x, y + size * 0.6, overSeats ? paper.faintInk : ink);
  });
}

/** Texts are few and come again in every frame: their widths are measured once. */
const WIDTHS = new Map<string, number>();

function measured(context: Context, text: string, size: number, weight: number): number {
  const key = `${weight}|${text}`;
  let width = WIDTHS.get(key);
  if (width === undefined) {
    if (WIDTHS.size > 4000) WIDTHS.clear();
    context.font = `${weight} 100px ${SEAT_FONT}`;
    width = context.measureText(text).width / 100;
    WIDTHS.set(key, width);
  }
  return width * size;
}

function centred(context: Context, text: string, x: number, y: number, colour: string): void {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = colour;
  context.fillText(text, x, y);
}
