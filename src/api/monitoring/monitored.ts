import type { Service, ServiceSettings } from '../service.ts'

/** What health and metrics are told of: an `ev serve`, or an `ev worker`, which has no API. */
export type MonitoringDeps = Pick<
  Service,
  'clock' | 'random' | 'log' | 'database' | 'engine' | 'worker' | 'disk' | 'isStopping'
> & {
  readonly settings: Pick<ServiceSettings, 'baseUrl' | 'version' | 'trustProxy' | 'metricsToken'>
}
