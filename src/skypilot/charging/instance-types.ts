/** Accelerators that the name of an instance type tells. */
import type { Hardware } from './contract.ts';

/** SkyPilot names those of Kubernetes after what they have: `4CPU--16GB--A100:1`. `null` = the name does not tell. */
export function acceleratorsIn(instanceType: string | null): Hardware['accelerators'] {
  const [, name, count = '0'] =
    /^[\d.]+CPU--[\d.]+GB(?:--([A-Za-z][\w-]{0,100}):(\d{1,6}))?$/i.exec(instanceType ?? '') ?? [];
  if (name !== undefined) {
    return { name, count: Number(count) };
  }
  return /^[\d.]+CPU--[\d.]+GB$/i.test(instanceType ?? '') ? { name: 'none', count: 0 } : null;
}
