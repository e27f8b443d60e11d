/** Converts the form to the lease for Blazar, or reports mistakes by field. */
import { isMapping, jsonIn, type Mapping } from '../../../base/yaml/tree.ts';
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
  const isNamed = isVisible(leaseForm.name, 2 * MAX_NAME) && [...leaseForm.name].length <= MAX_NAME;
  check('name', isNamed ? undefined : `expected a name of at most ${MAX_NAME} visible characters`);
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
  const reservations = leaseForm.reservations.map((one, index) =>
    written(one, (field, mistake) => check(fieldName(index, field), mistake)),
  );
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
function bodyOf({ parameters, more }: Written): Reservation {
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

export const OPERATORS = ['==', '!=', '>=', '<=', '>', '<'] as const;

interface Written {
  readonly parameters: readonly Parameter[];
  /** Further attributes of types that the client does not support. */
  readonly more: Mapping;
}

/** Calls `check` with each field of a reservation, and its mistake. */
function written(
  form: ReservationForm,
  check: (field: ReservationField, mistake: string | undefined) => void,
): Written {
  const parameters: Parameter[] = [['resource_type', form.type]];
  const count = (field: ReservationField, least = 1) => {
    check(field, countMistake(form[field], least));
    parameters.push([field, String(Number(form[field]))]);
  };
  const id = (field: ReservationField, what: string) => {
    check(field, idMistake(form[field], what));
    parameters.push([field, form[field]]);
  };
  const affinity = () => {
    if (form.affinity !== '') {
      check('affinity', ['True', 'False'].includes(form.affinity) ? undefined : 'expected a choice');
      parameters.push(['affinity', form.affinity]);
    }
  };
  /** An expression that Blazar parses. */
  const expression = (field: 'properties' | 'hypervisor', key: string) => {
    const text = form[field];
    if (text === '') {
      return;
    }
    try {
      if (text.length > MAX_TEXT || UNSEEN.test(text.replaceAll(/[\r\n\t]/g, ' '))) {
        throw new Error(`expected at most ${MAX_TEXT} visible characters`);
      }
      parseResourceProperties(text);
      // On one line, for the shell and the client.
      parameters.push([key, JSON.stringify(JSON.parse(text))]);
    } catch (thrown) {
      check(field, thrown instanceof Error ? thrown.message : 'expected a list in JSON');
    }
  };
  /** Simple comparisons or an expression, not both. */
  const properties = () => {
    const given = COMPARISONS.filter((row) => form[`p${row}_name`] + form[`p${row}_value`] !== '');
    if (given.length === 0) {
      expression('properties', 'resource_properties');
    } else if (form.properties !== '') {
      check('properties', 'expected either simple comparisons or this text, not both');
    } else {
      const requirements = given.map((row) => comparison(form, row, check));
      parameters.push(['resource_properties', formatResourceProperties(requirements)]);
    }
  };
  switch (form.type) {
    case 'physical:host':
      count('min');
      count('max');
      if (Number(form.min) > Number(form.max)) {
        check('max', 'expected a maximum that is not below the minimum');
      }
      expression('hypervisor', 'hypervisor_properties');
      properties();
      break;
    case 'virtual:instance':
      count('amount');
      count('vcpus');
      count('memory_mb');
      count('disk_gb', 0);
      affinity();
      properties();
      break;
    case 'flavor:instance':
      count('amount');
      id('flavor_id', 'a flavor');
      affinity();
      break;
    case 'virtual:floatingip': {
      count('amount');
      id('network_id', 'a network');
      const given = form.addresses.split(/[\s,]+/).filter((one) => one !== '');
      if (given.length > 100 || given.some((one) => !/^[0-9a-fA-F.:]{2,45}$/.test(one))) {
        check('addresses', 'expected at most 100 addresses, such as 203.0.113.7, separated by commas');
      }
      if (given.length > 0) {
        parameters.push(['required_floatingips', JSON.stringify(given)]);
      }
      break;
    }
    default: {
      if (form.amount !== '') {
        count('amount');
      }
      const more = objectIn(form.more);
      const what = `an object in JSON of at most ${MAX_TEXT} characters, such as {"network_name": "lab"}`;
      check('more', more === undefined ? `expected ${what}` : undefined);
      return { parameters, more: more ?? {} };
    }
  }
  return { parameters, more: {} };
}

function comparison(
  form: ReservationForm,
  row: (typeof COMPARISONS)[number],
  check: (field: ReservationField, mistake: string) => void,
) {
  const name = form[`p${row}_name`];
  const value = form[`p${row}_value`];
  const operator = OPERATORS.find((one) => one === form[`p${row}_operator`]);
  if (!/^\$?[^\s$]+$/.test(name) || UNSEEN.test(name) || name.length > MAX_ID) {
    check(`p${row}_name`, 'expected the name of a property without blanks, such as gpu');
  } else if (operator === undefined) {
    check(`p${row}_operator`, 'expected a comparison');
  } else if (!isVisible(value, MAX_ID)) {
    check(`p${row}_value`, `expected a value of at most ${MAX_ID} visible characters`);
  }
  return { name: name.replace(/^\$/, ''), operator: operator ?? '==', value };
}

function objectIn(text: string): Mapping | undefined {
  const value = text.length > MAX_TEXT ? undefined : jsonIn(text || '{}');
  return isMapping(value) ? value : undefined;
}

const COUNT = /^\d{1,7}$/;

function countMistake(text: string, least: number): string | undefined {
  const isFine = COUNT.test(text) && Number(text) >= least && Number(text) <= MOST;
  return isFine ? undefined : `expected a whole number from ${least} to ${MOST}`;
}

function idMistake(text: string, of: string): string | undefined {
  const what = `the id of ${of}, of at most ${MAX_ID} visible characters`;
  return isVisible(text, MAX_ID) ? undefined : `expected ${what}`;
}

function isVisible(text: string, longest: number): boolean {
  return text !== '' && text.length <= longest && !UNSEEN.test(text);
}

const dateMistake = 'expected a date and a time to the minute, such as 2026-12-01T09:00 (UTC)';

/** Blazar's client does not support seconds. */
function minuteOf(text: string): Instant | undefined {
  const instant = toInstant(text);
  return instant !== undefined && instant >= 0n && instant % MINUTE === 0n ? instant : undefined;
}
