import { describe, expect, it } from 'vitest';
import { asAskedFor } from '../../../../src/kubernetes/cluster/scan/scanned-objects.ts';

/** As a real API server writes it: test/peers. */
const asked = { managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:spec': { 'f:nodeName': {} } } }] };
const notAsked = {
  managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:spec': { 'f:schedulerName': {} } } }],
};

describe('a running pod as somebody asked for it', () => {
  it.for([[notAsked], [{}], [{ managedFields: 7 }], [{ managedFields: [{ fieldsV1: null }] }]])(
    'has no node if a scheduler has chosen it: %j',
    ([metadata]) => {
      const pod = { metadata, spec: { nodeName: 'n1', nodeSelector: { disk: 'ssd' } } };
      expect(asAskedFor(pod as never).spec).toEqual({ nodeSelector: { disk: 'ssd' } });
      expect(pod.spec.nodeName).toBe('n1');
    },
  );

  it('keeps the node that somebody asked for', () => {
    const pod = { metadata: asked, spec: { nodeName: 'n1' } };
    expect(asAskedFor(pod)).toBe(pod);
  });
});
