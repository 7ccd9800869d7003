import type { Service, ServiceSettings } from '../service.ts'

/** Dependencies of health and metrics: those of `ev serve`, or of `ev worker`, which has no API. */
export type MonitoringDeps = Pick<
  Service,
  'clock' | 'random' | 'log' | 'database' | 'engine' | 'worker' | 'disk' | 'isStopping'
> & {
  readonly settings: Pick<ServiceSettings, 'baseUrl' | 'version' | 'trustProxy' | 'metricsToken'>
}
