import { globSync } from 'node:fs'
import { join } from 'node:path'
import { CLOCK_CHECK_FAILED, CLOCK_SET } from '../../src/db/synchronize-clock.ts'
import { CHECKS_FAILED } from '../../src/doctor/doctor-cache.ts'
import {
  CLOCK_AHEAD,
  RETENTION_FAILED,
  RETENTION_FINISHED,
} from '../../src/maintenance/retention-job.ts'
import type { LogEvent } from '../../src/platform/log.ts'
import type { MetricInfo } from '../../src/platform/metric.ts'
import { ROOT } from './markdown.ts'

const modules: readonly Record<string, unknown>[] = await Promise.all(
  globSync('src/*/telemetry.ts', { cwd: ROOT }).map(path => import(join(ROOT, path))),
)

/** Returns the entries of all tables of the modules whose names end with `suffix`. */
const entriesOf = <T>(suffix: string): T[] =>
  modules.flatMap(module =>
    Object.entries(module)
      .filter(([name]) => name.endsWith(suffix))
      .flatMap(([, table]) => Object.values(table as Record<string, T>)),
  )

/** All events of the log. */
export const LOG_EVENTS: readonly LogEvent[] = [
  ...entriesOf<LogEvent>('_LOG'),
  CLOCK_CHECK_FAILED,
  CLOCK_SET,
  CHECKS_FAILED,
  RETENTION_FAILED,
  RETENTION_FINISHED,
  CLOCK_AHEAD,
]

/** All metrics except those of Node. */
export const METRICS: readonly MetricInfo[] = entriesOf('_METRICS')
