/** The folder that `lookback train` writes: a checkpoint, what the run was told, the loss curve, and the model. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { appendFile, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { TrainingStep } from "../node.js";
import { parseRemembered, type Remembered } from "./train-launch.js";

const CHECKPOINT = "checkpoint.safetensors";
const REMEMBERED = "run.json";
const CURVE = "loss.csv";
const HEADER = "step,loss,validation";

export class TrainingFolder {
  readonly path: string;
  /** The lowest validation loss so far. */
  lowest = Number.POSITIVE_INFINITY;

  constructor(path: string) {
    this.path = path;
  }

  get hasCheckpoint(): boolean {
    return existsSync(this.#file(CHECKPOINT));
  }

  readCheckpoint(): Uint8Array {
    if (!this.hasCheckpoint) throw new Error(`${this.path} holds no ${CHECKPOINT} to go on from; leave --resume away.`);
    return readFileSync(this.#file(CHECKPOINT));
  }

  /** What the run was told; undefined where nobody noted it. */
  readRemembered(): Remembered | undefined {
    const path = this.#file(REMEMBERED);
    return existsSync(path) ? parseRemembered(readFileSync(path, "utf8"), path) : undefined;
  }

  /** Makes the folder, notes what the run was told, and takes up the curve as it was after `step`. */
  async begin(step: number, told: Remembered): Promise<void> {
    mkdirSync(this.path, { recursive: true });
    await this.#write(REMEMBERED, `${JSON.stringify(told, undefined, 2)}\n`);
    const curve = this.#file(CURVE);
    const before = step > 0 && existsSync(curve) ? readFileSync(curve, "utf8").split("\n").slice(1) : [];
    const kept = before.filter((line) => line !== "" && Number.parseInt(line, 10) <= step);
    for (const line of kept) this.#notice(Number(line.split(",")[2] || Number.POSITIVE_INFINITY));
    await this.#write(CURVE, `${[HEADER, ...kept].join("\n")}\n`);
  }

  /** Adds to the curve; tells whether the validation loss was never lower. */
  async record({ step, loss, validation }: TrainingStep): Promise<boolean> {
    await appendFile(this.#file(CURVE), `${step},${loss},${validation?.loss ?? ""}\n`);
    return validation !== undefined && this.#notice(validation.loss);
  }

  save(checkpoint: Uint8Array): Promise<void> {
    return this.#write(CHECKPOINT, checkpoint);
  }

  async writeModel(files: readonly File[]): Promise<void> {
    for (const file of files) await this.#write(file.name, new Uint8Array(await file.arrayBuffer()));
  }

  #notice(validation: number): boolean {
    if (validation >= this.lowest) return false;
    this.lowest = validation;
    return true;
  }

  #file(name: string): string {
    return join(this.path, name);
  }

  /** Whole or not at all: what was there before stays until the new one is on the disk. */
  async #write(name: string, content: Uint8Array | string): Promise<void> {
    const temporary = this.#file(`${name}.part`);
    try {
      const handle = await open(temporary, "w");
      try {
        await handle.writeFile(content);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(temporary, this.#file(name));
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }
}
