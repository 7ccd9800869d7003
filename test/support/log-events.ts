import { globSync } from 'node:fs'
import { join } from 'node:path'
import { CLOCK_SET } from '../../src/db/synchronize-clock.ts'
import { CHECKS_FAILED } from '../../src/doctor/doctor-cache.ts'
import { CLOCK_AHEAD, RETENTION_FINISHED } from '../../src/maintenance/retention-job.ts'
import type { LogEvent } from '../../src/platform/log.ts'
import { LOOP_FAILED } from '../../src/platform/loop.ts'
import { ROOT } from './markdown.ts'

const modules: readonly Record<string, unknown>[] = await Promise.all(
  globSync('src/*/telemetry.ts', { cwd: ROOT }).map(path => import(join(ROOT, path))),
)

/** All events of the log. */
export const LOG_EVENTS: readonly LogEvent[] = [
  ...modules.flatMap(module =>
    Object.entries(module)
      .filter(([name]) => name.endsWith('_LOG'))
      .flatMap(([, events]) => Object.values(events as Record<string, LogEvent>)),
  ),
  LOOP_FAILED,
  CLOCK_SET,
  CHECKS_FAILED,
  RETENTION_FINISHED,
  CLOCK_AHEAD,
]
