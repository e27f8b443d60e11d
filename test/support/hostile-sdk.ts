/** OpenTelemetry SDKs that are broken in every method, each in one way. */

/** The behaviour of all methods of such an SDK. */
export const HOSTILE = {
  'throws in every method': () => {
    throw new Error('hostile SDK');
  },
  'returns nothing': () => undefined,
  'returns null': () => null,
  'returns texts that are no ids': () => 'x\r\nInjected: yes',
  'returns promises that are never kept': () => new Promise(() => {}),
  'returns itself': (self: object) => self,
} as const;

export type Hostility = keyof typeof HOSTILE;

const REGISTERED = Symbol.for('opentelemetry.js.api.1');

/** Registers it in this process, replacing any other. */
export function registerHostileSdk(how: Hostility): void {
  Object.assign(globalThis, {
    [REGISTERED]: {
      version: '1.9.1',
      trace: hostile(how, 'getTracer'),
      context: hostile(how),
      propagation: hostile(how),
    },
  });
}

export function unregisterSdk(): void {
  Reflect.deleteProperty(globalThis, REGISTERED);
}

/** `except`: a method that returns another object, so that there is a tracer. */
function hostile(how: Hostility, except?: string): object {
  const target: object = Object.assign(() => {}, {});
  const self: object = new Proxy(target, {
    get(_, name) {
      if (name === except) {
        return () => hostile(how);
      }
      if (name === 'then') {
        return undefined;
      }
      return () => (HOSTILE[how] as (self: object) => unknown)(self);
    },
  });
  return self;
}
