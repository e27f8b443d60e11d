/**
 * The dates that `toInstant` accepts, as a regular expression for the OpenAPI document. It cannot tell whether the calendar
 * has a day (`2026-02-30`). It uses no lookaheads and no flags, which some languages lack.
 */

const year = '(0[1-9]|[1-9][0-9])[0-9]{2}';
const month = '(0[1-9]|1[0-2])';
const day = '(0[1-9]|[12][0-9]|3[01])';
const week = 'W(0[1-9]|[1-4][0-9]|5[0-3])';
const dayOfYear = '(00[1-9]|0[1-9][0-9]|[12][0-9]{2}|3[0-5][0-9]|36[0-6])';
const hour = '([01][0-9]|2[0-4])';
const minute = '[0-5][0-9]';
const second = '[0-5][0-9]([.,][0-9]{1,18})?';
const offset = '([Zz]|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)';

/** `2026-12-01`, `2026-12-01 09:00`, `2026-12-01T09:00:00.000001+01:00`. */
const calendar = `${year}-${month}-${day}([Tt ]${hour}:${minute}(:${second})?)?${offset}?`;
/** `20261201T090000Z`, `2026-335`, `2026-W49-2T09:00`. */
const other = `${year}(${month}${day}|-?${dayOfYear}|-?${week}-?[1-7])([Tt]${hour}(:?${minute}(:?${second})?)?${offset}?)?`;

export const DATE_PATTERN = `^(${calendar}|${other})$`;
