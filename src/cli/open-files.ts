import type { Config } from '../config/settings.ts'
import { thisMachine } from '../doctor/machine.ts'
import { formatNumber } from '../platform/format.ts'
import { fillMessage } from '../platform/log.ts'
import { connectionsFor, filesFor } from '../platform/open-files.ts'
import { CLI_LOG } from './telemetry.ts'

/**
 * Reduces the concurrent connections of the settings to what the limit of open files allows, and
 * calls `warn` with a sentence that says so.
 */
export function fitToOpenFiles(
  config: Config,
  warn: (text: string) => void,
  filesMax = thisMachine.openFilesMax,
): Config {
  const concurrency = connectionsFor(filesMax, config.concurrency)
  if (concurrency === config.concurrency) return config
  warn(
    fillMessage(
      CLI_LOG.openFilesLow,
      `${formatNumber(filesMax ?? 0)}, so ev opens at most ${formatNumber(concurrency)} connections, not ${formatNumber(config.concurrency)}. ` +
        `Raise it: ulimit -n ${filesFor(config.concurrency)}, or LimitNOFILE= of systemd.`,
    ),
  )
  return { ...config, concurrency }
}
