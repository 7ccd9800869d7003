import type { OnResult, RunOptions } from './run-options.ts'

/** The built package, so that Node strips no types during the run. */
const built = new URL('../../dist/index.js', import.meta.url).href
const { createEngine }: typeof import('../../src/index.ts') = await import(built)

/** Above what is reached, so that sessions and round trips limit the rate in all variants. */
const SESSIONS_PER_SECOND = 1_000

/** Verifies a stream of addresses with the engine of the package, without a result cache. */
export async function verifyWithEngine(options: RunOptions, onResult: OnResult): Promise<void> {
  const engine = createEngine({
    dns: [options.dnsAddress],
    smtpPort: options.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.example.com',
    sessionsPerOperator: options.sessionsPerHost,
    recipientsPerSession: options.recipientsPerSession,
    sessionsPerSecond: SESSIONS_PER_SECOND,
    concurrency: options.concurrency,
    cache: false,
  })
  for await (const { email, verdict } of engine.verifyMany(options.addresses)) {
    const sure = verdict.reason === 'accepted_email' || verdict.reason === 'rejected_email'
    onResult(email, sure ? verdict.deliverable : null)
  }
  await engine.close()
}
