/** A real cluster for the tests of one file: skipped aloud where there is none, stopped after the last of them. */
import { afterAll } from 'vitest';
import { type Cluster, startCluster } from './kubernetes.ts';

export interface ClusterOfFile {
  /** `undefined`: there is none, and the tests are to be skipped. */
  readonly cluster: Cluster | undefined;
  /** For tests that are not skipped. Throws where there is none. */
  readonly here: () => Cluster;
  /** What ends before the cluster does, in reverse order. */
  readonly closing: (() => unknown)[];
}

export function clusterOfFile(options?: Parameters<typeof startCluster>[0]): ClusterOfFile {
  const cluster = startCluster(options);
  const closing: (() => unknown)[] = [() => cluster?.stop()];
  afterAll(async () => {
    for (const close of closing.toReversed()) {
      await close();
    }
  });
  return {
    cluster,
    here() {
      if (cluster === undefined) {
        throw new Error('there is no cluster');
      }
      return cluster;
    },
    closing,
  };
}
