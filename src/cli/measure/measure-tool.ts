import { composeEngine } from '../../compose/engine.ts'
import type { EgressConfig } from '../../config/file-settings.ts'
import type { Config } from '../../config/settings.ts'
import { isFault } from '../../engine/address/address.ts'
import { type Dial, tcpDial } from '../../engine/smtp/dial.ts'
import { type Class, toClass } from '../../engine/verdict/verdict.ts'
import { type CliContext, externalDepsFrom, inCwd } from '../context.ts'
import { stderrLog } from '../log.ts'
import { terminalWidth } from '../width.ts'
import type { Measured } from './measure-page.ts'
import { scoreVerdicts } from './score.ts'
import { runTool, type ToolSource, toMatchKey, type Verdicts } from './tool.ts'
import type { KnownAddress } from './truth-list.ts'

type EvRun = {
  readonly addresses: readonly KnownAddress[]
  /** Whether to retry greylisted and deferred addresses. */
  readonly wait: boolean
}

/** Measures ev itself on this machine. */
export async function measureEv(
  context: CliContext,
  config: Config,
  { addresses, wait }: EvRun,
): Promise<Measured> {
  const log = stderrLog(context, config, () => terminalWidth(context, context.stderr))
  const deps = externalDepsFrom(context, log)
  const counter = { connections: 0 }
  const dial = countDials(deps.dial ?? tcpDial, counter)
  const engine = composeEngine(config, { ...deps, dial })
  const options = { forceRefresh: true, wait }
  const startedAt = context.clock.monotonicNow()
  const verdicts = new Map<string, Class>()
  let blocks = 0
  try {
    const texts = addresses.map(({ address }) => address)
    for await (const result of engine.verifyMany(texts, options)) {
      const { address } = result.evidence
      if (!isFault(address)) verdicts.set(toMatchKey(address), toClass(result.verdict))
      if (result.verdict.reason === 'probe_blocked') blocks++
    }
  } finally {
    await engine.close()
  }
  return {
    name: 'ev',
    score: score(addresses, verdicts),
    seconds: (context.clock.monotonicNow() - startedAt) / 1_000,
    connections: counter.connections,
    blocks,
  }
}

/** Counts the connections of all egresses. */
function countDials(
  dial: Dial | ((egress: EgressConfig) => Dial),
  counter: { connections: number },
): (egress: EgressConfig) => Dial {
  return egress => {
    const inner = typeof dial === 'function' ? dial(egress) : dial
    return {
      connect(to, signal) {
        counter.connections++
        return inner.connect(to, signal)
      },
      secure: (socket, host, signal) => inner.secure(socket, host, signal),
    }
  }
}

/** Measures a command, or results in a file. */
export async function measureTool(
  context: CliContext,
  source: ToolSource,
  addresses: readonly KnownAddress[],
): Promise<Measured> {
  const isFile = 'file' in source
  const at = isFile ? { ...source, file: inCwd(context, source.file) } : source
  const startedAt = context.clock.monotonicNow()
  const verdicts = await runTool(
    at,
    addresses.map(({ address }) => address),
    context.cwd,
  )
  return {
    name: source.name,
    score: score(addresses, verdicts),
    seconds: isFile ? null : (context.clock.monotonicNow() - startedAt) / 1_000,
    connections: null,
    blocks: null,
  }
}

const score = (addresses: readonly KnownAddress[], verdicts: Verdicts) =>
  scoreVerdicts(addresses.map(({ key, truth }) => ({ truth, class: verdicts.get(key) ?? null })))
