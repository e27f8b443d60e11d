/** Converts the form to the lease for Blazar, or reports mistakes by field. */
import { isMapping } from '../../../base/yaml/tree.ts';
import { type Instant, toInstant } from '../../../lease/dates.ts';
import type { Lease, Reservation } from '../../../lease/lease.ts';
import { formatResourceProperties, parseResourceProperties } from '../../../lease/resource-properties.ts';
import { dateText, MINUTE } from '../../estimate/wanted-lease.ts';
import { type Parameter, type RequestedLease, reservationText, sentReservation } from './client-syntax.ts';
import {
  COMPARISONS,
  fieldName,
  type LeaseForm,
  type ReservationField,
  type ReservationForm,
} from './lease-form.ts';

/** Name of a field → its mistake. */
export type Mistakes = ReadonlyMap<string, string>;

export interface WantedLease {
  readonly lease: Lease;
  readonly asked: RequestedLease;
}

/** The size of Blazar's name column. */
const MAX_NAME = 80;
const MAX_ID = 255;
const MAX_TEXT = 4096;
const MOST = 1_000_000;
/** Invisible characters, which cannot be copied from a page. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/** The lease of a valid form. `now`: the start of a lease that starts at once. */
export function leaseOf(leaseForm: LeaseForm, now: Instant): WantedLease | { readonly mistakes: Mistakes } {
  const mistakes = new Map<string, string>();
  const check = (name: string, mistake: string | undefined) => {
    if (mistake !== undefined && !mistakes.has(name)) {
      mistakes.set(name, mistake);
    }
  };
  check('project', idMistake(leaseForm.project, 'a project'));
  check('user', idMistake(leaseForm.user, 'a user'));
  check('name', nameMistake(leaseForm.name));
  const start = leaseForm.start === '' ? now - (now % MINUTE) : minuteOf(leaseForm.start);
  const end = minuteOf(leaseForm.end);
  check('start', start === undefined ? dateMistake : undefined);
  check('end', end === undefined ? dateMistake : undefined);
  if (start !== undefined && end !== undefined && end <= start) {
    check('end', 'expected an end after the start');
  }
  if (leaseForm.reservations.length === 0) {
    check('add', 'expected at least one reservation: add one');
  }
  const reservations = leaseForm.reservations.map((one, index) => new WrittenReservation(one, index, check));
  if (mistakes.size > 0 || start === undefined || end === undefined) {
    return { mistakes };
  }
  const asked: RequestedLease = {
    name: leaseForm.name,
    start: leaseForm.start === '' ? undefined : dateText(start),
    end: dateText(end),
    reservations: reservations.map(({ parameters }) => parameters),
  };
  return {
    asked,
    lease: {
      name: leaseForm.name,
      start_date: dateText(start),
      end_date: dateText(end),
      reservations: reservations.map(bodyOf),
    },
  };
}

/** What the client sends; for other types, the attributes as they are, with whole numbers as numbers. */
function bodyOf({ parameters, more }: WrittenReservation): Reservation {
  const sent = sentReservation(reservationText(parameters));
  return (
    sent ?? {
      ...more,
      ...Object.fromEntries(
        parameters.map(([key, value]) => [key, COUNT.test(value) ? Number(value) : value]),
      ),
    }
  );
}

type Check = (name: string, mistake: string | undefined) => void;

export const OPERATORS = ['==', '!=', '>=', '<=', '>', '<'] as const;

/** A reservation of the form, with its fields checked. */
class WrittenReservation {
  readonly parameters: Parameter[];
  /** Further attributes of types that the client does not support. */
  more: Readonly<Record<string, unknown>> = {};
  readonly #form: ReservationForm;
  readonly #check: (field: ReservationField, mistake: string | undefined) => void;

  constructor(form: ReservationForm, index: number, check: Check) {
    this.parameters = [['resource_type', form.type]];
    this.#form = form;
    this.#check = (field, mistake) => check(fieldName(index, field), mistake);
    this.#read();
  }

  #read(): void {
    const { type, min, max, amount } = this.#form;
    switch (type) {
      case 'physical:host':
        this.#count('min');
        this.#count('max');
        if (Number(min) > Number(max)) {
          this.#check('max', 'expected a maximum that is not below the minimum');
        }
        this.#expression('hypervisor', 'hypervisor_properties');
        this.#properties();
        break;
      case 'virtual:instance':
        this.#count('amount');
        this.#count('vcpus');
        this.#count('memory_mb');
        this.#count('disk_gb', 0);
        this.#affinity();
        this.#properties();
        break;
      case 'flavor:instance':
        this.#count('amount');
        this.#id('flavor_id', 'a flavor');
        this.#affinity();
        break;
      case 'virtual:floatingip':
        this.#count('amount');
        this.#id('network_id', 'a network');
        this.#addresses();
        break;
      default:
        if (amount !== '') {
          this.#count('amount');
        }
        this.#further();
    }
  }

  #count(field: ReservationField, least = 1): void {
    this.#check(field, countMistake(this.#form[field], least));
    this.parameters.push([field, String(Number(this.#form[field]))]);
  }

  #id(field: ReservationField, what: string): void {
    this.#check(field, idMistake(this.#form[field], what));
    this.parameters.push([field, this.#form[field]]);
  }

  #affinity(): void {
    const { affinity } = this.#form;
    if (affinity !== '') {
      this.#check('affinity', ['True', 'False'].includes(affinity) ? undefined : 'expected a choice');
      this.parameters.push(['affinity', affinity]);
    }
  }

  /** Simple comparisons or an expression, not both. */
  #properties(): void {
    const form = this.#form;
    const given = COMPARISONS.filter((row) => form[`p${row}_name`] + form[`p${row}_value`] !== '');
    if (given.length === 0) {
      this.#expression('properties', 'resource_properties');
      return;
    }
    if (form.properties !== '') {
      this.#check('properties', 'expected either simple comparisons or this text, not both');
      return;
    }
    const requirements = given.map((row) => {
      const name = form[`p${row}_name`];
      const value = form[`p${row}_value`];
      const operator = OPERATORS.find((one) => one === form[`p${row}_operator`]);
      const isName = /^\$?[^\s$]+$/.test(name) && !UNSEEN.test(name) && name.length <= MAX_ID;
      const isValue = value !== '' && !UNSEEN.test(value) && value.length <= MAX_ID;
      if (!isName) {
        this.#check(`p${row}_name`, 'expected the name of a property without blanks, such as gpu');
      } else if (operator === undefined) {
        this.#check(`p${row}_operator`, 'expected a comparison');
      } else if (!isValue) {
        this.#check(`p${row}_value`, `expected a value of at most ${MAX_ID} visible characters`);
      }
      return { name: name.replace(/^\$/, ''), operator: operator ?? '==', value };
    });
    this.parameters.push(['resource_properties', formatResourceProperties(requirements)]);
  }

  /** An expression that Blazar parses. */
  #expression(field: 'properties' | 'hypervisor', key: string): void {
    const text = this.#form[field];
    if (text === '') {
      return;
    }
    try {
      if (text.length > MAX_TEXT || UNSEEN.test(text.replaceAll(/[\r\n\t]/g, ' '))) {
        throw new Error(`expected at most ${MAX_TEXT} visible characters`);
      }
      parseResourceProperties(text);
      // On one line, for the shell and the client.
      this.parameters.push([key, JSON.stringify(JSON.parse(text))]);
    } catch (thrown) {
      this.#check(field, thrown instanceof Error ? thrown.message : 'expected a list in JSON');
    }
  }

  #addresses(): void {
    const given = this.#form.addresses.split(/[\s,]+/).filter((one) => one !== '');
    if (given.length > 100 || given.some((one) => !/^[0-9a-fA-F.:]{2,45}$/.test(one))) {
      this.#check('addresses', 'expected at most 100 addresses, such as 203.0.113.7, separated by commas');
    }
    if (given.length > 0) {
      this.parameters.push(['required_floatingips', JSON.stringify(given)]);
    }
  }

  #further(): void {
    const text = this.#form.more;
    try {
      const value: unknown = text.length > MAX_TEXT ? undefined : JSON.parse(text || '{}');
      if (isMapping(value)) {
        this.more = value;
        return;
      }
    } catch {
      // Reported below.
    }
    this.#check(
      'more',
      `expected an object in JSON of at most ${MAX_TEXT} characters, such as {"network_name": "lab"}`,
    );
  }
}

const COUNT = /^\d{1,7}$/;

function countMistake(text: string, least: number): string | undefined {
  const isFine = COUNT.test(text) && Number(text) >= least && Number(text) <= MOST;
  return isFine ? undefined : `expected a whole number from ${least} to ${MOST}`;
}

function idMistake(text: string, of: string): string | undefined {
  const isFine = text !== '' && text.length <= MAX_ID && !UNSEEN.test(text);
  return isFine ? undefined : `expected the id of ${of}, of at most ${MAX_ID} visible characters`;
}

function nameMistake(name: string): string | undefined {
  const isFine = name !== '' && [...name].length <= MAX_NAME && !UNSEEN.test(name);
  return isFine ? undefined : `expected a name of at most ${MAX_NAME} visible characters`;
}

const dateMistake = 'expected a date and a time to the minute, such as 2026-12-01T09:00 (UTC)';

/** Blazar's client does not support seconds. */
function minuteOf(text: string): Instant | undefined {
  const instant = toInstant(text);
  return instant !== undefined && instant >= 0n && instant % MINUTE === 0n ? instant : undefined;
}
