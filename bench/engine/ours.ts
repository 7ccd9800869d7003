import type { OnResult, RunOptions } from './run-options.ts'
import { DELIVERABLE_BY_REASON, LIMITS } from './scenario.ts'

/** The built package, so that Node strips no types during the run. */
const built = new URL('../../dist/index.js', import.meta.url).href
const { createEngine }: typeof import('../../src/index.ts') = await import(built)

/** Verifies a stream of addresses with the engine of the package, without a result cache. */
export async function verifyWithEngine(options: RunOptions, onResult: OnResult): Promise<void> {
  const engine = createEngine({
    dns: [options.dnsAddress],
    smtpPort: options.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.example.com',
    sessionsPerOperator: LIMITS.sessionsPerHost,
    recipientsPerSession: LIMITS.recipientsPerSession,
    sessionsPerSecond: LIMITS.sessionsPerSecond,
    concurrency: LIMITS.concurrency,
    cache: false,
  })
  for await (const { email, verdict } of engine.verifyMany(options.addresses)) {
    onResult(email, DELIVERABLE_BY_REASON[verdict.reason] ?? null)
  }
  await engine.close()
}
