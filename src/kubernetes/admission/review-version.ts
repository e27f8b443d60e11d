/** What every review says that it is. Source: Kubernetes API, admission.k8s.io/v1. */
export const API_VERSION = 'admission.k8s.io/v1';
export const KIND = 'AdmissionReview';
