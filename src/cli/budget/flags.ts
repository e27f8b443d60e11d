/** The flags of `budget`. */
import { InvalidRequestError } from '../../base/errors.ts';
import type { EndpointFlags } from '../endpoint.ts';
import { UsageError } from '../output.ts';
import type { SourceFlags } from '../sources.ts';

export interface FormatFlags extends SourceFlags, EndpointFlags {
  readonly format: 'table' | 'json';
}

export interface AuthorFlags extends SourceFlags, EndpointFlags {
  readonly user?: string;
  readonly from: string;
  readonly who?: string;
  readonly reason?: string;
}

export interface SetFlags extends AuthorFlags {
  readonly amount: string;
  readonly until: string;
}

export interface ImportFlags extends FormatFlags {
  readonly dryRun?: boolean;
  readonly who?: string;
  readonly reason?: string;
}

export interface ExportFlags extends SourceFlags, EndpointFlags {
  readonly format: 'csv' | 'json';
}

/** The flag or argument that a property of a budget comes from. */
const FLAGS: Readonly<Record<string, string>> = {
  projectId: 'project',
  userId: '--user',
  from: '--from',
  until: '--until',
  amount: '--amount',
};

/** A mistake in a budget, reported under the name of its flag. */
export function inFlags<Result>(parse: () => Result): Result {
  try {
    return parse();
  } catch (thrown) {
    if (!(thrown instanceof InvalidRequestError)) {
      throw thrown;
    }
    throw new UsageError(
      `${FLAGS[thrown.field] ?? thrown.field}${thrown.message.slice(thrown.field.length)}`,
    );
  }
}
