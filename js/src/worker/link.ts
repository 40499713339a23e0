import { fail, kindOf, LookbackError } from "../errors.js";
import { readOptions } from "../options.js";
import type { WorkerCall } from "./types.js";
import { CALL, type Failure, type Handle, Parcel, type Reply, type Request, unpack } from "./wire.js";

/** A worker as node.ts and web.ts make it, each from what its platform has. */
export interface Channel {
  post(message: Request, buffers: ArrayBuffer[]): void;
  /** `failed`: the worker has ended, or never began, without being asked to. */
  listen(received: (reply: Reply) => void, failed: (why: string) => void): void;
  /** Whether calls are waiting: an idle worker keeps no process alive. */
  busy(waiting: boolean): void;
  end(): void;
}

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly call: WorkerCall;
  readonly stopListening: () => void;
  /** The object called and what it was given: those of the worker stay alive until the call has ended. */
  readonly held: readonly unknown[];
}

const NAMES = Object.keys(CALL);

/** The conversation with one worker. */
export class Link {
  readonly #channel: Channel;
  readonly #pending = new Map<number, Pending>();
  readonly #objects = new Map<number, WeakRef<object>>();
  readonly #handleOf: (value: object) => Handle | undefined;
  readonly #forgotten = new FinalizationRegistry<number>((id) => this.release(id));
  #calls = 0;
  /** Why no call can be made any more. */
  #ended: LookbackError | undefined;

  constructor(channel: Channel, handleOf: (value: object, link: Link) => Handle | undefined) {
    this.#channel = channel;
    this.#handleOf = (value) => handleOf(value, this);
    channel.listen(
      (reply) => this.#receive(reply),
      (why) => this.end(new LookbackError("worker-failed", `The worker of lookback has ended: ${why}.`)),
    );
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Calls `name` of the object `target` with what was given, less signal, onProgress and transfer. */
  async call(target: number, name: string, given: readonly unknown[], caller?: object): Promise<unknown> {
    if (this.#ended) throw this.#ended;
    const [plain, call] = separate(given, name);
    call.signal?.throwIfAborted();
    const parcel = new Parcel(call.transfer === true, this.#handleOf);
    const packed = plain.map((value) => parcel.pack(value));
    const id = ++this.#calls;
    const request = { call: id, target, name, given: packed, progress: call.onProgress !== undefined };
    try {
      this.#channel.post(request, [...parcel.buffers]);
    } catch (error) {
      fail("bad-option", `${name}: the arguments cannot be sent to the worker: ${(error as Error).message}`, error);
    }
    this.#channel.busy(true);
    return new Promise((resolve, reject) => {
      const abort = () => this.#channel.post({ abort: id }, []);
      call.signal?.addEventListener("abort", abort);
      const stopListening = () => call.signal?.removeEventListener("abort", abort);
      this.#pending.set(id, { resolve, reject, call, stopListening, held: [caller, given] });
    });
  }

  /** Knows `object` by its number, until it is garbage at the latest. */
  adopt(id: number, object: object): void {
    this.#objects.set(id, new WeakRef(object));
    this.#forgotten.register(object, id, object);
  }

  /** The object of the worker with this number is of no more use; after the last one the worker is neither. */
  release(id: number, object?: object): void {
    if (object) this.#forgotten.unregister(object);
    if (!this.#objects.delete(id) || this.#ended) return;
    if (this.#objects.size === 0) this.end(new LookbackError("disposed", "The worker was forgotten."));
    else if (id !== 0) this.call(id, "dispose", []).catch(() => undefined);
  }

  end(why: LookbackError): void {
    if (this.#ended) return;
    this.#ended = why;
    this.#channel.end();
    for (const { reject, stopListening } of this.#pending.values()) {
      stopListening();
      reject(why);
    }
    this.#pending.clear();
  }

  #receive(reply: Reply): void {
    const pending = this.#pending.get(reply.call);
    if (!pending) return;
    if ("progress" in reply) {
      this.#tell(pending, reply.call, reply.progress);
      return;
    }
    this.#pending.delete(reply.call);
    pending.stopListening();
    if (this.#pending.size === 0) this.#channel.busy(false);
    if ("value" in reply)
      pending.resolve(unpack(reply.value, (handle) => this.#objects.get(handle.id)?.deref() ?? handle));
    else pending.reject("aborted" in reply ? pending.call.signal?.reason : errorOf(reply.error));
  }

  /** An onProgress that throws ends its call with that error. */
  #tell(pending: Pending, id: number, fraction: number): void {
    try {
      pending.call.onProgress?.(fraction);
    } catch (error) {
      this.#pending.delete(id);
      pending.stopListening();
      this.#channel.post({ abort: id }, []);
      if (this.#pending.size === 0) this.#channel.busy(false);
      pending.reject(error);
    }
  }
}

/** What the last argument says about the call itself, and the arguments without that. */
function separate(given: readonly unknown[], name: string): [unknown[], WorkerCall] {
  const plain = [...given];
  const last = plain.at(-1);
  if (kindOf(last) !== "Object" || !NAMES.some((own) => own in (last as object))) return [plain, {}];
  const entries = Object.entries(last as object);
  const call = readOptions(Object.fromEntries(entries.filter(([own]) => NAMES.includes(own))), CALL, name);
  const rest = entries.filter(([own]) => !NAMES.includes(own));
  plain.pop();
  if (rest.length > 0) plain.push(Object.fromEntries(rest));
  return [plain, call as WorkerCall];
}

const errorOf = ({ code, message }: Failure): Error =>
  code === undefined
    ? new LookbackError("worker-failed", `The call failed in the worker: ${message}`)
    : new LookbackError(code, message);
