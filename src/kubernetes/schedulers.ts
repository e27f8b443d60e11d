/** The users that the schedulers of Kubernetes use to assign pods to nodes. */
export const SCHEDULERS: readonly string[] = ['system:kube-scheduler'];
