import { ROW_NAMES_FROM_CSS_PX, SECTION_NAMES_TO_CSS_PX } from "./detail.js";
import { SEAT_FONT } from "./glyphs.js";
import type { Frame, Paper, Scene, SectionPaint } from "./scene.js";

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

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

function writeSections(
  context: Context, scene: Scene, frame: Frame, sections: readonly SectionPaint[], paper: Paper, diameterCss: number,
): void {
  const { ratio } = frame;
  scene.areas.forEach((area, n) => {
    const paint = sections[n];
    if (!paint || (!area.standing && diameterCss > SECTION_NAMES_TO_CSS_PX)) return;
    const x = area.label.x * frame.scale + frame.x, y = area.label.y * frame.scale + frame.y;
    const width = (area.box.right - area.box.left) * frame.scale, height = (area.box.bottom - area.box.top) * frame.scale;
    if (x + width < 0 || x - width > frame.width || y + height < 0 || y - height > frame.height) return;
    const size = Math.round(Math.min(Math.max(Math.min(width / 7, height / 3.5), 10 * ratio), (area.standing ? 18 : 15) * ratio));
    context.font = `650 ${size}px ${SEAT_FONT}`;
    const nameWidth = context.measureText(paint.name).width;
    // A name wider than its section would be taken for the neighbour's.
    if (nameWidth > width * 1.05 || size * 1.4 > height) return;
    const small = Math.round(size * 0.8);
    context.font = `500 ${small}px ${SEAT_FONT}`;
    const detailWidth = context.measureText(paint.detail).width;
    const withDetail = paint.detail !== "" && detailWidth < width * 1.05 && size * 3.2 < height;
    const lines = withDetail ? size * 1.15 + small * 1.15 : size * 1.2;
    const plateWidth = Math.max(nameWidth, withDetail ? detailWidth : 0) + size * 1.1;
    context.fillStyle = paper.plate;
    context.beginPath();
    context.roundRect(x - plateWidth / 2, y - lines / 2 - size * 0.25, plateWidth, lines + size * 0.5, size * 0.5);
    context.fill();
    context.font = `650 ${size}px ${SEAT_FONT}`;
    centred(context, paint.name, x, withDetail ? y - small * 0.62 : y, paper.ink);
    if (!withDetail) return;
    context.font = `500 ${small}px ${SEAT_FONT}`;
    centred(context, paint.detail, x, y + size * 0.6, paper.faintInk);
  });
}

function centred(context: Context, text: string, x: number, y: number, colour: string): void {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = colour;
  context.fillText(text, x, y);
}
