/** The canvas of a map with what moves on it: the part that is seen, and the cell that is pointed at. */
import { LookbackError } from "lookback";
import type { Attention } from "../data.js";
import { h } from "../dom.js";
import type { Look } from "../styles.js";
import { type Context, drawMap, drawPointer } from "./draw.js";
import { listen } from "./gestures.js";
import { boldFont, type Layout, layoutMap } from "./layout.js";
import type { Picture } from "./picture.js";
import { type Cell, clamped, isWhole, moved, revealing, type View, wholeView, zoomed } from "./viewport.js";

export interface StageHost {
  /** Another cell is pointed at; `byKey`: by the keyboard, so it is said aloud. */
  pointed(byKey: boolean): void;
  /** The lock has changed. */
  locked(): void;
}

export interface StageSettings {
  readonly look: Look;
  readonly room: number;
  readonly height: number;
  readonly density: number;
  readonly numbers: boolean;
}

function resize(canvas: HTMLCanvasElement, { width, height }: Layout, density: number): void {
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

export class Stage {
  readonly surface = h("div", { part: "map", class: "surface", tabindex: "0", role: "application" });
  readonly #base = h("canvas", { part: "canvas", "aria-hidden": "true" });
  readonly #overlay = h("canvas", { class: "overlay", "aria-hidden": "true", hidden: true });
  readonly #host: StageHost;
  #picture: Picture | null = null;
  #settings: StageSettings | null = null;
  #layout: Layout | null = null;
  #layoutOf: Attention | null = null;
  #laidOut = "";
  #view: View = { cell: 1, x: 0, y: 0 };
  #frame = 0;
  cell: Cell | null = null;
  isLocked = false;

  constructor(host: StageHost) {
    this.#host = host;
    this.surface.append(this.#base, this.#overlay);
    listen(this.surface, {
      layout: () => this.#layout,
      view: () => this.#view,
      zoomed: () => this.#layout !== null && !isWhole(this.#layout.frame, this.#view),
      point: (cell) => this.#hover(cell),
      press: (cell) => this.#press(cell),
      zoom: (factor, px, py) => this.#see(this.#layout && zoomed(this.#layout.frame, this.#view, factor, px, py)),
      pan: (dx, dy) => this.#see(this.#layout && moved(this.#layout.frame, this.#view, dx, dy)),
      step: (rows, columns) => this.#step(rows, columns),
      end: (axis, last) => this.#end(axis, last),
      lock: () => this.cell && this.#press(this.cell),
      whole: () => this.whole(),
      release: () => this.#release(),
    });
  }

  get layout(): Layout | null {
    return this.#layout;
  }
  get view(): View {
    return this.#view;
  }
  set view(view: View) {
    this.#see(this.#layout && clamped(this.#layout.frame, view));
  }

  show(picture: Picture, settings: StageSettings): void {
    const changed = this.#picture?.attention !== picture.attention;
    this.#picture = picture;
    this.#settings = settings;
    if (changed && this.cell && !this.#has(this.cell)) {
      this.cell = null;
      this.isLocked = false;
    }
    this.#arrange(picture, settings);
    // New data are there at once and whole; what moves afterwards may come in pieces.
    this.draw(true);
  }

  /** Points at a cell and tells nobody. */
  point(cell: Cell | null, locked: boolean): void {
    this.cell = cell && this.#has(cell) ? { query: cell.query, key: cell.key } : null;
    this.isLocked = locked && this.cell !== null;
    if (this.cell && this.#layout) this.#see(revealing(this.#layout.frame, this.#view, this.cell));
  }

  whole(): void {
    if (this.#layout) this.#see(wholeView(this.#layout.frame));
  }

  /** Around the cell that is pointed at, or the middle. */
  zoom(factor: number): void {
    const layout = this.#layout;
    if (!layout) return;
    const { frame } = layout;
    const { cell, x, y } = this.#view;
    const at = this.cell
      ? [(this.cell.key + 0.5) * cell - x, (this.cell.query + 0.5) * cell * frame.aspect - y]
      : [frame.width / 2, frame.height / 2];
    this.#see(zoomed(frame, this.#view, factor, at[0]!, at[1]!));
  }

  draw(patient = false): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (!this.#layout || !this.#picture || !this.#settings) return;
    if (!this.#paint(this.#base.getContext("2d")!, this.#base.width / this.#layout.width, patient)) this.#redraw();
    this.#drawPointer();
  }

  /** What is seen now, without what is pointed at. */
  canvas(density: number): HTMLCanvasElement {
    if (!this.#layout) throw new LookbackError("invalid-attention", "there is no picture yet: wait for `updated`.");
    const canvas = h("canvas");
    resize(canvas, this.#layout, density);
    this.#paint(canvas.getContext("2d")!, density, true);
    return canvas;
  }

  #paint(context: Context, density: number, patient: boolean): boolean {
    const { look, numbers } = this.#settings!;
    return drawMap(
      context,
      this.#picture!,
      { layout: this.#layout!, view: this.#view, look, density, numbers },
      patient,
    );
  }

  /** The overlay needs as much memory as the picture: it has none until a cell is pointed at. */
  #drawPointer(): void {
    if (!this.#layout || !this.#picture || !this.#settings) return;
    this.#overlay.hidden = this.cell === null;
    if (this.cell === null) return;
    if (this.#overlay.width === 0) resize(this.#overlay, this.#layout, this.#settings.density);
    const density = this.#overlay.width / this.#layout.width;
    const { look, numbers } = this.#settings;
    const scene = { layout: this.#layout, view: this.#view, look, density, numbers };
    drawPointer(this.#overlay.getContext("2d")!, this.#picture.attention, scene, this.cell, this.isLocked);
  }

  /** Lays the parts out where sizes have changed; what was zoomed in to stays in sight. */
  #arrange({ attention, bars }: Picture, { room, height, density, look }: StageSettings): void {
    const laidOut = JSON.stringify([room, density, height, bars !== null, look.font]);
    if (room <= 0 || (this.#layoutOf === attention && laidOut === this.#laidOut)) return;
    const context = this.#base.getContext("2d")!;
    context.font = boldFont(look.font);
    const measure = (text: string) => context.measureText(text).width;
    const layout = layoutMap(attention, room, height, density, measure, bars !== null);
    const kept = this.#layout && this.#layoutOf === attention && !isWhole(this.#layout.frame, this.#view);
    this.#layout = layout;
    this.#layoutOf = attention;
    this.#laidOut = laidOut;
    resize(this.#base, layout, density);
    this.#overlay.width = 0;
    this.surface.style.width = `${layout.width}px`;
    this.surface.parentElement?.style.setProperty("--_width", `${layout.width}px`);
    this.surface.style.height = `${layout.height}px`;
    this.#see(kept ? clamped(layout.frame, this.#view) : wholeView(layout.frame));
  }

  #has({ query, key }: Cell): boolean {
    const attention = this.#picture?.attention;
    const within = (at: number, length: number) => Number.isInteger(at) && at >= 0 && at < length;
    return attention !== undefined && within(query, attention.queryLength) && within(key, attention.keyLength);
  }

  #see(view: View | null): void {
    if (!view) return;
    this.#view = view;
    this.surface.classList.toggle("zoomed", this.#layout !== null && !isWhole(this.#layout.frame, view));
    this.#redraw();
  }

  #redraw(): void {
    this.#frame ||= requestAnimationFrame(() => this.draw());
  }

  #hover(cell: Cell | null): void {
    if (this.isLocked || (cell?.query === this.cell?.query && cell?.key === this.cell?.key)) return;
    // What the keyboard chose stays when the pointer merely leaves.
    if (!cell && this.surface.matches(":focus-visible")) return;
    this.#choose(cell, false);
  }

  #choose(cell: Cell | null, byKey: boolean): void {
    this.cell = cell;
    this.#drawPointer();
    this.#host.pointed(byKey);
  }

  #press(cell: Cell): void {
    const same = this.cell?.query === cell.query && this.cell.key === cell.key;
    const locked = !(this.isLocked && same);
    this.isLocked = locked;
    if (!same) this.#choose(cell, false);
    this.#drawPointer();
    this.#host.locked();
  }

  #release(): void {
    if (!this.isLocked) {
      this.#choose(null, false);
      return;
    }
    this.isLocked = false;
    this.#drawPointer();
    this.#host.locked();
  }

  #step(rows: number, columns: number): void {
    const attention = this.#picture?.attention;
    if (!attention) return;
    // The first key press finds the first cell.
    const { query, key } = this.cell ?? { query: -rows, key: -columns };
    const within = (at: number, length: number) => Math.max(0, Math.min(length - 1, at));
    this.#goTo({
      query: within(query + rows, attention.queryLength),
      key: within(key + columns, attention.keyLength),
    });
  }

  #end(axis: "key" | "query", last: boolean): void {
    const attention = this.#picture?.attention;
    if (!attention) return;
    const from = this.cell ?? { query: 0, key: 0 };
    if (axis === "key") this.#goTo({ ...from, key: last ? attention.keyLength - 1 : 0 });
    else this.#goTo({ ...from, query: last ? attention.queryLength - 1 : 0 });
  }

  #goTo(cell: Cell): void {
    const was = this.isLocked;
    this.isLocked = false;
    if (this.#layout) this.#see(revealing(this.#layout.frame, this.#view, cell));
    this.#choose(cell, true);
    if (was) this.#host.locked();
  }
}
