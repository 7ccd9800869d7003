import { existsSync } from 'node:fs'
import { composeEngine } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import { fileOf } from '../../db/database-url.ts'
import { ENGINE_LOG } from '../../engine/telemetry.ts'
import { decide } from '../../engine/verdict/action.ts'
import { presentResult } from '../../engine/verdict/present-result.ts'
import type { Log } from '../../platform/log.ts'
import { type CliContext, externalDepsFrom } from '../context.ts'
import { listsUrl } from '../database-location.ts'
import type { LocalFeedback } from '../local-feedback.ts'
import { stderrLog } from '../log.ts'
import { printMessage } from '../print.ts'
import { createOutboundHint } from '../reachability-hint.ts'
import type { Verifier, VerifierOptions } from '../remote/verify.ts'
import { heloHint } from '../settings.ts'
import { terminalWidth } from '../width.ts'

type LocalVerifierOptions = VerifierOptions & {
  readonly sandbox: boolean
  /** Whether results are printed as text, which tells why a connection was rejected. */
  readonly isText: boolean
  /** Whether notes about the settings are printed. */
  readonly hasNotes: boolean
}

/** Verifies addresses with an engine in this process. */
export async function createLocalVerifier(
  context: CliContext,
  config: Config,
  { sandbox, checkSmtp, withDialogue, isText, hasNotes }: LocalVerifierOptions,
): Promise<Verifier> {
  const log = stderrLog(context, config, () => terminalWidth(context, context.stderr))
  const reachability = createOutboundHint(isText ? withoutRejections(log) : log, config)
  const externalDeps = externalDepsFrom(context, reachability.log)
  const engine = composeEngine(config, externalDeps, { sandbox })
  const feedback = sandbox ? null : await findFeedback(context, config)
  const options = { checkSmtp, ...(withDialogue ? { include: ['dialogue' as const] } : {}) }
  return {
    async verify(address) {
      const found = await engine.verify(address, options)
      const result = feedback === null ? found : await feedback.adjust(found)
      return {
        result,
        decision: decide(result, config.actionPolicy),
        toObject: include => presentResult(result, include, config.actionPolicy),
      }
    },
    printNotes(results) {
      for (const result of results) reachability.note(result)
      const outboundHint = reachability.atEnd()
      if (outboundHint !== null) printMessage(context, 'warning', outboundHint)
      const hint = hasNotes && reachability.hasReached() ? heloHint(config) : null
      if (hint !== null) printMessage(context, 'note', hint)
    },
    async close() {
      await engine.close()
      await feedback?.close()
    },
  }
}

/** Drops the warning about a server that rejected the connection: the text of a result has it. */
const withoutRejections = (log: Log): Log => ({
  ...log,
  warn: (message, fields) =>
    message !== ENGINE_LOG.connectionRejected.message && log.warn(message, fields),
})

/** Loads the code of the database only if there is one: most users of `ev verify` have none. */
async function findFeedback(context: CliContext, config: Config): Promise<LocalFeedback | null> {
  if (!existsSync(fileOf(listsUrl(config)))) return null
  const { openLocalFeedback } = await import('../local-feedback.ts')
  return openLocalFeedback(context, config)
}
