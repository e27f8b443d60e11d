/**
 * The syntax of `openstack reservation lease create` in python-blazarclient: which reservations it can
 * request, and what it sends to Blazar. Source: python-blazarclient 4, `v1/shell_commands/leases.py`.
 */
import { jsonIn } from '../../../base/yaml/tree.ts';
import type { Reservation } from '../../../lease/lease.ts';

/** Supported keys of each type, with the defaults that the client sends; `undefined` = sent only if given. */
const KEYS: Readonly<
  Record<string, Readonly<Record<string, string | number | readonly string[] | undefined>>>
> = {
  'physical:host': {
    min: '',
    max: '',
    hypervisor_properties: '',
    resource_properties: '',
    before_end: undefined,
    resource_type: 'physical:host',
  },
  'virtual:instance': {
    vcpus: '',
    memory_mb: '',
    disk_gb: '',
    amount: '',
    affinity: 'None',
    resource_properties: '',
    resource_type: 'virtual:instance',
  },
  'virtual:floatingip': {
    amount: 1,
    network_id: undefined,
    required_floatingips: [],
    resource_type: 'virtual:floatingip',
  },
  'flavor:instance': { flavor_id: '', amount: '', affinity: 'None', resource_type: 'flavor:instance' },
};

/** A parameter of `--reservation`. */
export type Parameter = readonly [key: string, value: string];

/** `resource_type=physical:host,min=1,max=2` */
export function reservationText(parameters: readonly Parameter[]): string {
  return parameters.map(([key, value]) => `${key}=${value}`).join(',');
}

/** What the client sends for `--reservation`; `undefined` = rejected or failed, as for all types but four. */
export function sentReservation(text: string): Reservation | undefined {
  const type = Object.keys(KEYS).find((one) => text.includes(one));
  const keys = type === undefined ? undefined : KEYS[type];
  if (keys === undefined) {
    return undefined;
  }
  const pattern = new RegExp(`^(?:(.*),)?(${Object.keys(keys).join('|')})=(.*)$`, 'u');
  const sent: Record<string, unknown> = {};
  let rest = text;
  while (rest !== '') {
    const match = pattern.exec(rest);
    const [, before = '', key = '', value = ''] = match ?? [];
    if (match === null || key in sent) {
      return undefined;
    }
    sent[key] = sentValue(value, keys[key]);
    if (sent[key] === undefined) {
      return undefined;
    }
    rest = before;
  }
  for (const [key, value] of Object.entries(keys)) {
    if (!(key in sent) && value !== undefined) {
      sent[key] = value;
    }
  }
  return sent;
}

const WHOLE = /^(?:0|-?[1-9]\d{0,14})$/;

function sentValue(value: string, missing: unknown): unknown {
  if (WHOLE.test(value)) {
    return Number(value);
  }
  if (!Array.isArray(missing)) {
    return value;
  }
  return jsonIn(value);
}

export interface RequestedLease {
  readonly name: string;
  /** `2026-12-01 09:00`, in UTC; `undefined` = now. */
  readonly start: string | undefined;
  readonly end: string;
  /** The parameters of each `--reservation`. */
  readonly reservations: readonly (readonly Parameter[])[];
}

/**
 * The command for a POSIX shell; `undefined` = the client cannot request exactly this lease. What it would
 * send is compared with the request: keys and values are not quoted, so a value may read like another key.
 */
export function leaseCommand({ name, start, end, reservations }: RequestedLease): string | undefined {
  const texts = reservations.map(reservationText);
  const isExact = reservations.every((parameters, index) => {
    const sent = sentReservation(texts[index] ?? '');
    const textOf = (one: unknown) => (typeof one === 'object' ? JSON.stringify(one) : String(one));
    return sent !== undefined && parameters.every(([key, value]) => textOf(sent[key]) === value);
  });
  if (!isExact || texts.length === 0) {
    return undefined;
  }
  const words = [
    'openstack reservation lease create',
    ...(start === undefined ? [] : [`--start-date ${quoted(start)}`]),
    `--end-date ${quoted(end)}`,
    ...texts.map((text) => `--reservation ${quoted(text)}`),
    // Otherwise a name that begins with a dash would be an option.
    `${name.startsWith('-') ? '-- ' : ''}${quoted(name)}`,
  ];
  return words.join(' \\\n  ');
}

const PLAIN = /^[\w.:=,/+-]+$/;

/** A single word for a POSIX shell, whatever its content. */
export function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
