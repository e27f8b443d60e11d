/** The users as which the schedulers of Kubernetes put pods on nodes. */
export const SCHEDULERS: readonly string[] = ['system:kube-scheduler'];
