import { skypilotSection } from '../skypilot/options.ts';
import { serviceSection } from './options.ts';

/** What the configuration is asked for besides `[enforcement]`, by the service and by whoever looks at its configuration. */
export const SECTIONS = [serviceSection, skypilotSection] as const;
