import type { Errand, Told } from './scenario-run.ts'

/** What users get: the built package, so that Node has no types to strip. */
const built = new URL('../../dist/index.js', import.meta.url).href
const { createEngine }: typeof import('../../src/index.ts') = await import(built)

/** Far above what is reached: the pace is to be set by sessions and round trips, for both ways. */
const SESSIONS_PER_SECOND = 1_000

/** The engine of the package with a stream of addresses; it remembers no results. */
export async function askEngine(errand: Errand, tell: Told): Promise<void> {
  const engine = createEngine({
    dns: [errand.dnsAddress],
    smtpPort: errand.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.example.com',
    sessionsPerOperator: errand.sessionsPerHost,
    recipientsPerSession: errand.recipientsPerSession,
    sessionsPerSecond: SESSIONS_PER_SECOND,
    concurrency: errand.concurrency,
    cache: false,
  })
  for await (const { email, verdict } of engine.verifyMany(errand.addresses)) {
    const sure = verdict.reason === 'accepted_email' || verdict.reason === 'rejected_email'
    tell(email, sure ? verdict.deliverable : null)
  }
  await engine.close()
}
