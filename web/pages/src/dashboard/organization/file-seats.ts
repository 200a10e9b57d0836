/** The seats of a layout's file as far as a browser can tell, so that a problem can be shown where it is. */

export interface FileSeat {
  /** Where the seat stands in the file: "/zones/0/seats/12", "/lines/13". */
  pointer: string;
  x: number;
  y: number;
  name: string;
}

export interface FileProblem {
  pointer: string;
  code?: string;
  detail: string;
}

export function seatsIn(text: string): FileSeat[] {
  return text.trimStart().startsWith('{') ? nativeSeats(text) : csvSeats(text);
}

function nativeSeats(text: string): FileSeat[] {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return [];
  }
  const found: FileSeat[] = [];
  const zones = (document as { zones?: unknown }).zones;
  if (!Array.isArray(zones)) return [];
  zones.forEach((zone: unknown, z) => {
    const seats = (zone as { seats?: unknown } | null)?.seats;
    if (!Array.isArray(seats)) return;
    seats.forEach((seat: unknown, s) => {
      const told = seat as { seat_id?: unknown; coordinates?: { x?: unknown; y?: unknown } } | null;
      const { x, y } = told?.coordinates ?? {};
      if (typeof x === 'number' && typeof y === 'number') {
        found.push({ pointer: `/zones/${z}/seats/${s}`, x, y, name: String(told?.seat_id ?? '') });
      }
    });
  });
  return found;
}

/** Plain cells only: a file with quoted commas is for the server to read. */
function csvSeats(text: string): FileSeat[] {
  const lines = text.replace(/^\uFEFF/, '').split(/\r\n|\n|\r/);
  const head = lines[0] ?? '';
  const comma = [',', ';', '\t'].find((one) => head.includes(one)) ?? ',';
  const columns = head.toLowerCase().split(comma).map((name) => name.trim());
  const at = (name: string) => columns.indexOf(name);
  if (at('x') < 0 || at('y') < 0) return [];
  return lines.slice(1).flatMap((line, n) => {
    const cells = line.split(comma);
    const read = (name: string) => (cells[at(name)] ?? '').trim();
    const number = (name: string) => (read(name) === '' ? NaN : Number(comma === ';' ? read(name).replace(',', '.') : read(name)));
    const x = number('x'), y = number('y');
    if (!Number.isFinite(x) || !Number.isFinite(y)) return [];
    return [{ pointer: `/lines/${n + 2}`, x, y, name: [read('zone'), read('row'), read('number')].filter(Boolean).join('-') }];
  });
}

/** Seats by the problems that mean them. */
export function seatsMeant(seats: readonly FileSeat[], problems: readonly FileProblem[]): Map<FileSeat, FileProblem[]> {
  const byPointer = new Map(seats.map((seat) => [seat.pointer, seat]));
  const meant = new Map<FileSeat, FileProblem[]>();
  for (const problem of problems) {
    const pointer = /^\/zones\/\d+\/seats\/\d+|^\/lines\/\d+/.exec(problem.pointer)?.[0];
    const seat = pointer === undefined ? undefined : byPointer.get(pointer);
    if (!seat) continue;
    const known = meant.get(seat);
    if (known) known.push(problem);
    else meant.set(seat, [problem]);
  }
  return meant;
}
