import type { Diagnosis } from "../diagnose-types.js";
import { fail, kindOf, LookbackError, refuse, show } from "../errors.js";
import { DISPOSE } from "../owned.js";
import type { Tensor, Variant } from "../types.js";
import { type Channel, Link } from "./link.js";
import type {
  WorkerKvCache,
  WorkerLinear,
  WorkerLookback,
  WorkerMultiHeadAttention,
  WorkerObject,
  WorkerOptions,
  WorkerProjectedMemory,
  WorkerTensor,
} from "./types.js";
import type { Handle } from "./wire.js";

/** An object of the worker's, by its number. */
abstract class Remote implements WorkerObject {
  readonly #link: Link;
  readonly #id: number;
  readonly #what: string;
  #disposed = false;

  constructor(link: Link, { id, constants }: Handle, what: string) {
    this.#link = link;
    this.#id = id;
    this.#what = what;
    link.adopt(id, this);
    for (const [name, value] of Object.entries(constants ?? {})) {
      Object.defineProperty(this, name, { value: Object.freeze(value), enumerable: true });
    }
  }

  /** The handle of a value that is an object of `link`'s worker; undefined for data. */
  static handleOf(value: object, link: Link): Handle | undefined {
    if (#link in value) {
      const remote = value as Remote;
      if (remote.#link === link) return { id: remote.living() };
      fail("other-instance", `${remote.#what} lives in another worker; pass what its read() gives.`);
    }
    if (typeof (value as { dispose?: unknown }).dispose !== "function") return undefined;
    return fail(
      "other-instance",
      `${show(value)} lives in another instance than the worker's; make it with the worker's own calls, or pass what its read() gives.`,
    );
  }

  /** Results are transferred: only what lives in the worker can be written there. */
  static checkTargets(options: unknown, name: string): void {
    const entriesOf = (record: unknown) => Object.entries(kindOf(record) === "Object" ? (record as object) : {});
    const { out } = Object(options) as { out?: { parameters?: unknown } };
    const parameters = entriesOf(out?.parameters).map(([target, value]) => [`parameters.${target}`, value]);
    for (const [target, value] of [...entriesOf(out).filter(([target]) => target !== "parameters"), ...parameters]) {
      if (value !== undefined && value !== null && !(#link in Object(value)))
        refuse(
          "bad-out",
          `${name}: out.${target}`,
          "a tensor of the worker's tensor(), for arrays arrive anyway",
          value,
        );
    }
  }

  get disposed(): boolean {
    return this.#disposed || this.#link.ended;
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#link.release(this.#id, this);
  }

  [DISPOSE](): void {
    this.dispose();
  }

  protected living(): number {
    if (this.#disposed) fail("disposed", `${this.#what} was disposed and can no longer be used.`);
    return this.#id;
  }

  /** The same call of the object itself. */
  protected async call<Result>(name: string, ...given: unknown[]): Promise<Result> {
    Remote.checkTargets(given.at(-1), name);
    return (await this.#link.call(this.living(), name, given, this)) as Result;
  }

  protected async make<Made>(Kind: new (link: Link, handle: Handle) => Made, name: string, ...given: unknown[]) {
    return new Kind(this.#link, await this.call<Handle>(name, ...given));
  }
}

class RemoteTensor extends Remote implements WorkerTensor {
  declare readonly dims: readonly number[];

  constructor(link: Link, handle: Handle) {
    super(link, handle, "The tensor");
  }

  read(...given: unknown[]): Promise<Float32Array> {
    return this.call("read", ...given);
  }

  write(...given: unknown[]): Promise<void> {
    return this.call("write", ...given);
  }
}

class RemoteCache extends Remote implements WorkerKvCache {
  declare readonly config: WorkerKvCache["config"];

  constructor(link: Link, handle: Handle) {
    super(link, handle, "The cache");
  }

  get capacity(): number {
    return this.config.capacity;
  }

  get lengths(): Promise<number[]> {
    return this.call("lengths");
  }

  get length(): Promise<number> {
    return this.call("length");
  }

  get firstPosition(): Promise<number> {
    return this.call("firstPosition");
  }

  append(...given: unknown[]): Promise<void> {
    return this.call("append", ...given);
  }

  read(...given: unknown[]): Promise<{ keys: Tensor; values: Tensor }> {
    return this.call("read", ...given);
  }

  truncate(...given: unknown[]): Promise<void> {
    return this.call("truncate", ...given);
  }

  reset(...given: unknown[]): Promise<void> {
    return this.call("reset", ...given);
  }

  clone(...given: unknown[]): Promise<WorkerKvCache> {
    return this.make(RemoteCache, "clone", ...given);
  }

  save(...given: unknown[]): Promise<Uint8Array> {
    return this.call("save", ...given);
  }

  load(...given: unknown[]): Promise<void> {
    return this.call("load", ...given);
  }
}

class RemoteMemory extends Remote implements WorkerProjectedMemory {
  declare readonly batch: number;
  declare readonly keyLength: number;

  constructor(link: Link, handle: Handle) {
    super(link, handle, "The projected memory");
  }
}

class RemoteLinear extends Remote {
  declare readonly config: WorkerLinear["config"];

  constructor(link: Link, handle: Handle, what = "This linear layer") {
    super(link, handle, what);
  }

  load(...given: unknown[]): Promise<void> {
    return this.call("load", ...given);
  }

  state(...given: unknown[]): Promise<Record<string, Tensor>> {
    return this.call("state", ...given);
  }

  forward(...given: unknown[]): Promise<unknown> {
    return this.call("forward", ...given);
  }
}

class RemoteLayer extends RemoteLinear {
  constructor(link: Link, handle: Handle) {
    super(link, handle, "This multi-head layer");
  }

  backward(...given: unknown[]): Promise<unknown> {
    return this.call("backward", ...given);
  }

  step(...given: unknown[]): Promise<unknown> {
    return this.call("step", ...given);
  }

  kvCache(...given: unknown[]): Promise<WorkerKvCache> {
    return this.make(RemoteCache, "kvCache", ...given);
  }

  project(...given: unknown[]): Promise<WorkerProjectedMemory> {
    return this.make(RemoteMemory, "project", ...given);
  }
}

class RemoteInstance extends Remote {
  declare readonly variant: Variant;
  declare readonly fused: boolean;
  declare readonly threads: number;
  declare readonly threadsReason: string | undefined;
  readonly #link: Link;

  constructor(link: Link, handle: Handle) {
    super(link, handle, "This lookback worker");
    this.#link = link;
  }

  override dispose(): void {
    this.#link.end(
      new LookbackError("disposed", "This lookback worker was disposed; make a new one with createLookbackWorker()."),
    );
  }

  attention(...given: unknown[]): Promise<unknown> {
    return this.call("attention", ...given);
  }

  attentionBackward(...given: unknown[]): Promise<unknown> {
    return this.call("attentionBackward", ...given);
  }

  mergeAttention(...given: unknown[]): Promise<unknown> {
    return this.call("mergeAttention", ...given);
  }

  rotary(...given: unknown[]): Promise<unknown> {
    return this.call("rotary", ...given);
  }

  async diagnose(...given: unknown[]): Promise<Diagnosis> {
    const { findings, examined, told } = await this.call<{ findings: object[]; examined: object; told: string }>(
      "diagnose",
      ...given,
    );
    return Object.defineProperties(findings, {
      examined: { value: Object.freeze(examined) },
      toString: { value: () => told },
    }) as unknown as Diagnosis;
  }

  kvCache(...given: unknown[]): Promise<WorkerKvCache> {
    return this.make(RemoteCache, "kvCache", ...given);
  }

  multiHeadAttention(...given: unknown[]): Promise<WorkerMultiHeadAttention> {
    return this.make(
      RemoteLayer,
      "multiHeadAttention",
      ...given,
    ) as Promise<unknown> as Promise<WorkerMultiHeadAttention>;
  }

  linear(...given: unknown[]): Promise<WorkerLinear> {
    return this.make(RemoteLinear, "linear", ...given) as Promise<unknown> as Promise<WorkerLinear>;
  }

  tensor(...given: unknown[]): Promise<WorkerTensor> {
    return this.make(RemoteTensor, "tensor", ...given);
  }

  memory(...given: unknown[]): Promise<unknown> {
    return this.call("memory", ...given);
  }
}

/** The worker's first call makes its instance; `address` makes a relative URL absolute, for a worker's own base is another. */
export async function connect(
  open: () => Channel,
  given: WorkerOptions | undefined,
  address: (url: string | URL) => string,
): Promise<WorkerLookback> {
  const signal = given?.signal;
  signal?.throwIfAborted();
  const link = new Link(open(), Remote.handleOf);
  const abort = () => link.end(new LookbackError("disposed", "The start was given up."));
  signal?.addEventListener("abort", abort);
  try {
    const handle = await link.call(0, "start", [sendable(given, address)]);
    return new RemoteInstance(link, handle as Handle) as unknown as WorkerLookback;
  } catch (error) {
    link.end(error as LookbackError);
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", abort);
  }
}

/** The options with a wasmUrl that means the same in the worker. */
function sendable(given: WorkerOptions | undefined, address: (url: string | URL) => string): unknown {
  const wasmUrl = given?.wasmUrl;
  if (typeof wasmUrl === "function") return { ...given, wasmUrl: tabulate(wasmUrl, address) };
  return typeof wasmUrl === "string" || kindOf(wasmUrl) === "URL" ? { ...given, wasmUrl: address(wasmUrl!) } : given;
}

type WasmUrl = Exclude<NonNullable<WorkerOptions["wasmUrl"]>, string | URL>;

/** What the function says for each build: functions cannot be sent, and the worker chooses the variant. */
const tabulate = (wasmUrl: WasmUrl, address: (url: string | URL) => string) =>
  Object.fromEntries(
    (["simd", "relaxed"] as const).map((variant) => [
      variant,
      [false, true].map((threaded) => address(wasmUrl(variant, threaded))),
    ]),
  );
