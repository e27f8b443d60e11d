/** The surroundings of policies that are tried: a clock that stands still, and no network. In the thread of a policy alone. */
import dgram from 'node:dgram';
import net from 'node:net';

/** How a policy is tried. */
export interface Trial {
  /** Milliseconds since 1970; `null` = the time of the machine. */
  readonly now: number | null;
  /** Whether the policy may open connections. */
  readonly network: boolean;
}

/** Changes the globals of this thread: call it nowhere else. */
export function beginTrial({ now, network }: Trial): void {
  if (now !== null) {
    stopClock(now);
  }
  if (!network) {
    cutNetwork();
  }
}

function stopClock(now: number): void {
  const Real = Date;
  globalThis.Date = new Proxy(Real, {
    apply: () => new Real(now).toString(),
    construct: (target, args: unknown[], newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now] : args, newTarget) as object,
    get: (target, name, receiver) =>
      name === 'now' ? () => now : (Reflect.get(target, name, receiver) as unknown),
  });
}

const CUT = 'no network in a test: set network: true in the case, or answer in the place of the service';

function cutNetwork(): void {
  net.Socket.prototype.connect = function refuse(this: net.Socket) {
    process.nextTick(() => this.destroy(new Error(CUT)));
    return this;
  };
  dgram.Socket.prototype.send = () => {
    throw new Error(CUT);
  };
}
