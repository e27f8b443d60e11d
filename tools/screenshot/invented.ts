/** The cloud of the pictures: invented projects, budgets, and requests of their users. */

export interface LeaseForm {
  readonly project?: string;
  readonly user: string;
  readonly name: string;
  /** Days from now; negative = in the past. */
  readonly start: number;
  readonly days: number;
  readonly hosts: number;
}

export interface InventedBudget {
  readonly project: string;
  readonly user: string | null;
  /** In node-hours. */
  readonly amount: string;
}

/** The project whose page is shown. */
export const PROJECT = 'climate';

export const BUDGETS: readonly InventedBudget[] = [
  { project: PROJECT, user: null, amount: '2000' },
  { project: PROJECT, user: 'bob', amount: '1100' },
  { project: 'genomics', user: null, amount: '1500' },
  { project: 'genomics', user: 'dana', amount: '400' },
  { project: 'networks', user: null, amount: '750' },
  { project: 'seismology', user: null, amount: '600' },
  { project: 'seismology', user: 'erik', amount: '200' },
];

/** Leases that are recorded at their start. */
export const PAST: readonly LeaseForm[] = [
  { user: 'carol', name: 'spin-up', start: -24, days: 3, hosts: 2 },
  { user: 'bob', name: 'ensemble-0', start: -18, days: 3, hosts: 4 },
  { user: 'alice', name: 'calibration', start: -11, days: 2, hosts: 2 },
  { project: 'genomics', user: 'dana', name: 'assembly', start: -8, days: 5, hosts: 3 },
  { user: 'bob', name: 'ensemble-1', start: -6, days: 3, hosts: 4 },
  { project: 'seismology', user: 'erik', name: 'inversion', start: -3, days: 6, hosts: 1 },
  { user: 'alice', name: 'reanalysis', start: -2, days: 5, hosts: 2 },
  { project: 'networks', user: 'fay', name: 'testbed', start: -1, days: 7, hosts: 4 },
];

/** Today's requests. Some are refused, with the limit in the message. */
export const TODAY: readonly LeaseForm[] = [
  { project: 'genomics', user: 'dana', name: 'annotation', start: 3, days: 1, hosts: 1 },
  { user: 'carol', name: 'storm-tracks', start: 4, days: 3, hosts: 2 },
  { project: 'seismology', user: 'erik', name: 'aftershocks', start: 5, days: 2, hosts: 1 },
  { user: 'bob', name: 'ensemble-2', start: 9, days: 4, hosts: 3 },
  { project: 'networks', user: 'fay', name: 'latency', start: 8, days: 3, hosts: 1 },
  { user: 'alice', name: 'century-run', start: 14, days: 10, hosts: 2 },
  { user: 'carol', name: 'downscaling', start: 20, days: 6, hosts: 9 },
  { user: 'bob', name: 'ensemble-3', start: 26, days: 6, hosts: 5 },
];

/** The estimate on the page: too much, but something smaller would fit. */
export const TRIED: LeaseForm = { user: 'bob', name: 'ensemble-3', start: 26, days: 6, hosts: 5 };
