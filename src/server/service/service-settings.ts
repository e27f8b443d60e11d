/** What a service is given besides its configuration. */
import type { Logger } from '../../base/logger.ts';
import type { Watchdog } from '../watchdog.ts';

export interface ServiceSettings {
  /** Default: standard error, as `log_level` and `log_format` say. */
  readonly logger?: Logger;
  /** Whether to reload when a configuration file changes. Default false. */
  readonly watch?: boolean;
  /** How often to look for changed files, in milliseconds. Default 1000. */
  readonly pollMs?: number;
  /** The clock by which the text of metrics is a second old: monotonic, in milliseconds. Default: that of the process. */
  readonly metricsClock?: () => number;
  /** Watches for filters that hold the process. Default: none. */
  readonly watchdog?: Pick<Watchdog, 'occupation' | 'watch' | 'heldForMs' | 'endIn'>;
}
