/** Reads `sbatch_options` of a configuration. Source: SkyPilot 0.13, its scripts for Slurm; Slurm, `get_argument`. */
import { isMapping } from '../../base/yaml/tree.ts';

export interface SbatchOption {
  /** As written. */
  readonly given: string;
  /** With `-` for `_`, as SkyPilot writes it. May be a prefix of the name of an option. */
  readonly name: string;
  readonly value: string;
  /** Whether sbatch reads one option, and no more. */
  readonly isPlain: boolean;
}

const NAME = /^[A-Za-z][A-Za-z0-9-]*$/;
/** An option behind a blank: sbatch removes quotes and backslashes before it looks for options. */
const SECOND = /(?:^|\s)["'\\]*-|\p{C}/u;
/** Wherever a line has one of these, it begins another component of the job, with resources of its own. */
const COMPONENT = /hetjob|packjob/i;

/** SkyPilot writes each as a line `#SBATCH --name=value`, and sbatch takes several options from a line. */
export function sbatchOptionsOf(options: unknown): SbatchOption[] {
  return Object.entries(isMapping(options) ? options : {}).map(([given, written]) => {
    const name = given.replaceAll('_', '-');
    const value = String(written);
    const isPlain = NAME.test(name) && !SECOND.test(value) && !COMPONENT.test(`${name}=${value}`);
    return { given, name, value, isPlain };
  });
}
