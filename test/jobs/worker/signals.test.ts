import { expect, test } from 'vitest'
import { mail } from '../../support/engine.ts'
import { createTestJob } from '../../support/job.ts'

test('a list has the signals of its catch-all domains', async () => {
  const job = await createTestJob({
    texts: ['ann@a.test', 'ben@a.test', 'not an address'],
    script: { answer: () => undefined },
    zone: {
      ...mail('a.test', '192.0.2.1'),
      '_dmarc.a.test': { TXT: ['v=DMARC1; p=reject'] },
      'a.test': { MX: [[10, 'mx.a.test']], TXT: ['v=spf1 -all'] },
    },
    flags: { signals: 'policies' },
  })
  await job.work()
  const results = await job.results()
  expect(results.map(result => [result?.verdict.risk, result?.verdict.confidence])).toEqual([
    ['high', 65],
    ['high', 65],
    ['high', 100],
  ])
  expect(results[0]?.evidence.signals).toMatchObject([{ name: 'policies', shift: 15 }])
})
