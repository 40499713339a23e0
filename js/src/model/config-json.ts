import { fail, kindOf, refuse, show } from "../errors.js";
import { MAX_SIZE } from "../options.js";

/** Fields of a config.json, read with their defaults; a field that is null is absent. */
export class ConfigFields {
  readonly #fields: Record<string, unknown>;
  readonly #where: string;

  constructor(fields: Record<string, unknown>, where: string) {
    this.#fields = fields;
    this.#where = where;
  }

  has(name: string): boolean {
    return this.raw(name) !== undefined;
  }

  raw(name: string): unknown {
    return (Object.hasOwn(this.#fields, name) ? this.#fields[name] : undefined) ?? undefined;
  }

  size(name: string, fallback?: number, most = MAX_SIZE): number {
    return this.#read(
      name,
      fallback,
      `an integer from 1 to ${most}`,
      (n) => Number.isInteger(n) && n >= 1 && n <= most,
    );
  }

  /** A size, or 0 where the field is null. */
  sizeOrNone(name: string, fallback: number): number {
    return this.#isNull(name) ? 0 : this.size(name, fallback);
  }

  positive(name: string, fallback?: number): number {
    return this.#read(name, fallback, "a number > 0", (n) => n > 0 && n < Infinity);
  }

  /** A number > 0, or 0 where the field is null. */
  positiveOrNone(name: string, fallback: number): number {
    if (this.#isNull(name)) return 0;
    return this.#read(name, fallback, "a number > 0 or null", (n) => n >= 0 && n < Infinity);
  }

  flag(name: string, fallback: boolean): boolean {
    const value = this.raw(name) ?? fallback;
    return typeof value === "boolean"
      ? value
      : refuse("invalid-model", `${this.#where}: ${name}`, "true or false", value);
  }

  text(name: string, fallback?: string): string {
    const value = this.raw(name) ?? fallback;
    return typeof value === "string" ? value : refuse("invalid-model", `${this.#where}: ${name}`, "a string", value);
  }

  list(name: string): readonly unknown[] | undefined {
    const value = this.raw(name);
    if (value === undefined || Array.isArray(value)) return value;
    return refuse("invalid-model", `${this.#where}: ${name}`, "a list", value);
  }

  /** The fields of an object within. */
  inner(name: string): ConfigFields | undefined {
    const value = this.raw(name);
    if (value === undefined) return undefined;
    if (kindOf(value) !== "Object") refuse("invalid-model", `${this.#where}: ${name}`, "an object", value);
    return new ConfigFields(value as Record<string, unknown>, `${this.#where}: ${name}`);
  }

  /** What this config asks for and nobody here can do. */
  unsupported(name: string, supported: string): never {
    fail("model-unknown", `${this.#where}: ${name} ${show(this.raw(name))} is not supported; ${supported}.`);
  }

  #isNull(name: string): boolean {
    return Object.hasOwn(this.#fields, name) && this.#fields[name] === null;
  }

  #read(name: string, fallback: number | undefined, accepted: string, accepts: (n: number) => boolean): number {
    const value = this.raw(name) ?? fallback;
    if (typeof value === "number" && accepts(value)) return value;
    return refuse("invalid-model", `${this.#where}: ${name}`, accepted, value);
  }
}
