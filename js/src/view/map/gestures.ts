/** Pointer, wheel, pinch and keys, as what they mean. */
import type { Layout } from "./layout.js";
import { type Cell, cellAt, type View } from "./viewport.js";

export interface GestureHost {
  layout(): Layout | null;
  view(): View;
  zoomed(): boolean;
  /** The cell under the pointer; null = none. */
  point(cell: Cell | null): void;
  press(cell: Cell): void;
  /** Larger by `factor` around a point of the window. */
  zoom(factor: number, px: number, py: number): void;
  pan(dx: number, dy: number): void;
  /** By so many cells; `far` = a page. */
  step(rows: number, columns: number): void;
  end(axis: "key" | "query", last: boolean): void;
  lock(): void;
  whole(): void;
  release(): void;
}

const CLICK = 4;
const PAGE = 10;
const KEY_ZOOM = 1.5;

/** `surface` takes the focus and all events. */
export function listen(surface: HTMLElement, host: GestureHost): void {
  const pointers = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  let spread = 0;

  const place = (event: { clientX: number; clientY: number }) => {
    const box = surface.getBoundingClientRect();
    const layout = host.layout();
    return { x: event.clientX - box.left - (layout?.left ?? 0), y: event.clientY - box.top - (layout?.top ?? 0) };
  };
  const cell = (at: { x: number; y: number }): Cell | null => {
    const layout = host.layout();
    return layout && cellAt(layout.frame, host.view(), at.x, at.y);
  };

  surface.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, place(event));
    if (pointers.size === 1) travelled = 0;
    spread = spreadOf(pointers);
  });
  surface.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    const at = place(event);
    if (!before) {
      if (pointers.size === 0 && event.pointerType !== "touch") host.point(cell(at));
      return;
    }
    pointers.set(event.pointerId, at);
    travelled += Math.hypot(at.x - before.x, at.y - before.y);
    if (pointers.size === 2) {
      const wider = spreadOf(pointers);
      const [a, b] = [...pointers.values()] as [typeof at, typeof at];
      if (spread > 0) host.zoom(wider / spread, (a.x + b.x) / 2, (a.y + b.y) / 2);
      host.pan((before.x - at.x) / 2, (before.y - at.y) / 2);
      spread = wider;
    } else if (travelled > CLICK && host.zoomed()) {
      // Captured only now, so that a click stays a click of what is beneath.
      if (!surface.hasPointerCapture(event.pointerId)) surface.setPointerCapture(event.pointerId);
      host.pan(before.x - at.x, before.y - at.y);
    } else host.point(cell(at));
  });
  const up = (event: PointerEvent) => {
    const at = pointers.get(event.pointerId);
    const alone = pointers.size === 1;
    pointers.delete(event.pointerId);
    spread = spreadOf(pointers);
    if (!at || !alone || event.type !== "pointerup" || travelled > CLICK) return;
    const pressed = cell(at);
    if (pressed) host.press(pressed);
  };
  surface.addEventListener("pointerup", up);
  surface.addEventListener("pointercancel", up);
  surface.addEventListener("pointerleave", (event) => {
    if (!pointers.has(event.pointerId)) host.point(null);
  });
  surface.addEventListener(
    "wheel",
    (event) => {
      // A page must scroll past a map: it takes the wheel while it has the focus, or with Ctrl (which a pinch on a trackpad sends).
      const root = surface.getRootNode() as ShadowRoot;
      if (!event.ctrlKey && !event.metaKey && root.activeElement !== surface) return;
      event.preventDefault();
      const at = place(event);
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
      if (event.shiftKey) host.pan(event.deltaX * lines || event.deltaY * lines, 0);
      else host.zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), at.x, at.y);
    },
    { passive: false },
  );
  surface.addEventListener("keydown", (event) => {
    if (event.altKey || event.metaKey || (event.ctrlKey && !/^(Home|End)$/.test(event.key))) return;
    if (onKey(event, host)) event.preventDefault();
  });
}

function spreadOf(pointers: ReadonlyMap<number, { x: number; y: number }>): number {
  const [a, b] = pointers.values();
  return a && b ? Math.hypot(a.x - b.x, a.y - b.y) : 0;
}

function onKey(event: KeyboardEvent, host: GestureHost): boolean {
  const layout = host.layout();
  if (!layout) return false;
  const middle = [layout.frame.width / 2, layout.frame.height / 2] as const;
  const size = event.shiftKey ? PAGE : 1;
  const actions: Record<string, () => void> = {
    ArrowLeft: () => host.step(0, -size),
    ArrowRight: () => host.step(0, size),
    ArrowUp: () => host.step(-size, 0),
    ArrowDown: () => host.step(size, 0),
    PageUp: () => host.step(-PAGE, 0),
    PageDown: () => host.step(PAGE, 0),
    Home: () => host.end(event.ctrlKey ? "query" : "key", false),
    End: () => host.end(event.ctrlKey ? "query" : "key", true),
    Enter: () => host.lock(),
    " ": () => host.lock(),
    "+": () => host.zoom(KEY_ZOOM, ...middle),
    "=": () => host.zoom(KEY_ZOOM, ...middle),
    "-": () => host.zoom(1 / KEY_ZOOM, ...middle),
    "0": () => host.whole(),
    Escape: () => host.release(),
  };
  const action = actions[event.key];
  action?.();
  return action !== undefined;
}
