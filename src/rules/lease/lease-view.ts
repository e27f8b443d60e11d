/** Leases as rules see them. Each attribute is computed on first use; `undefined` = the request has none. */
import { errorText } from '../../base/errors.ts';
import { leaseEnd, leaseStart } from '../../lease/dates.ts';
import { type Lease, type Reservation, reservationSize } from '../../lease/lease.ts';
import { type PropertyRequirement, parseResourceProperties } from '../../lease/resource-properties.ts';
import { InvalidPartError } from '../cel/frame.ts';
import { JsonList, JsonMap, Timestamp } from '../cel/values.ts';

/**
 * The requirements that Blazar reads, by resource type. It stores others as written, and the JSON of a
 * flavour as `resource_properties` of `flavor:instance`. Source: Blazar, `host_plugin`, `instance_plugin`,
 * `flavor_plugin`.
 */
const READ_PROPERTIES: ReadonlyMap<string, readonly string[]> = new Map([
  ['physical:host', ['resource_properties', 'hypervisor_properties']],
  ['flavor:instance', []],
  ['virtual:floatingip', []],
]);
/** For `virtual:instance`, and types of other plug-ins. */
const READ_ELSEWHERE = ['resource_properties'];

/** In nanoseconds. */
const HOUR = 3600 * 1e9;

export class LeaseView {
  readonly #lease: Lease;
  readonly #whole: readonly Reservation[];
  #reservations: readonly ReservationView[] | undefined;
  #start: Timestamp | undefined;
  #end: Timestamp | undefined;

  /** `reservations`: all of them, including those that an update leaves out. */
  constructor(lease: Lease, reservations: readonly Reservation[]) {
    this.#lease = lease;
    this.#whole = reservations;
  }

  get id(): string | undefined {
    return textOf(this.#lease.id);
  }

  get name(): string | undefined {
    return textOf(this.#lease.name);
  }

  get status(): string | undefined {
    return textOf(this.#lease.status);
  }

  get start_date(): Timestamp | undefined {
    this.#start ??= timestampOf(leaseStart(this.#lease));
    return this.#start;
  }

  get end_date(): Timestamp | undefined {
    this.#end ??= timestampOf(leaseEnd(this.#lease));
    return this.#end;
  }

  /** Its length. */
  get hours(): number | undefined {
    const { start_date: start, end_date: end } = this;
    return start === undefined || end === undefined ? undefined : Number(end.nanos - start.nanos) / HOUR;
  }

  get reservations(): readonly ReservationView[] {
    this.#reservations ??= this.#whole.map((one, index) => new ReservationView(one, index));
    return this.#reservations;
  }

  /** All data of the lease, as sent. */
  get attributes(): JsonMap {
    return new JsonMap(this.#lease);
  }
}

export class ReservationView {
  readonly #reservation: Reservation;
  readonly #index: number;
  #allocations: JsonList | undefined;
  #properties: ReadonlyMap<string, string> | undefined;

  /** `index`: in the lease, for messages. */
  constructor(reservation: Reservation, index: number) {
    this.#reservation = reservation;
    this.#index = index;
  }

  get id(): string | undefined {
    return textOf(this.#reservation.id);
  }

  get resource_type(): string | undefined {
    return textOf(this.#reservation.resource_type);
  }

  /** The maximum that it may get. */
  get size(): bigint | undefined {
    const size = reservationSize(this.#reservation);
    return size === undefined ? undefined : BigInt(size);
  }

  get allocations(): JsonList {
    this.#allocations ??= new JsonList(this.#reservation.allocations ?? []);
    return this.#allocations;
  }

  get attributes(): JsonMap {
    return new JsonMap(this.#reservation);
  }

  /** Its required properties of machines: values compared with `==`. @throws InvalidPartError if Blazar would refuse them */
  get properties(): ReadonlyMap<string, string> {
    this.#properties ??= this.#required();
    return this.#properties;
  }

  #required(): ReadonlyMap<string, string> {
    const required = new Map<string, string>();
    for (const written of READ_PROPERTIES.get(this.resource_type ?? '') ?? READ_ELSEWHERE) {
      for (const { name, operator, value } of this.#requirements(written)) {
        if (operator === '==') {
          required.set(name, value);
        }
      }
    }
    return required;
  }

  #requirements(written: string): readonly PropertyRequirement[] {
    try {
      return parseResourceProperties(this.#reservation[written]);
    } catch (thrown) {
      throw new InvalidPartError(`reservations[${this.#index}].${written}: ${errorText(thrown)}.`);
    }
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function timestampOf(instant: bigint | undefined): Timestamp | undefined {
  return instant === undefined ? undefined : Timestamp.fromMicroseconds(instant);
}
