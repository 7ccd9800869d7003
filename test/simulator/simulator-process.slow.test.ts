import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Scenario } from '../../src/simulator/scenario.ts'
import { startSimulatorProcess } from '../../src/simulator/simulator-process.ts'
import { Talk } from './talk.ts'

const SMALL: Scenario = {
  domains: { 'a.test': { mx: [[10, 'mx.a.test']] } },
  hosts: { 'mx.a.test': { behavior: 'polite' } },
}

describe('a simulator process', () => {
  test('listens, counts, resets and exits', async () => {
    const file = join(tmpdir(), `ev-simulator-${process.pid}.json`)
    writeFileSync(file, JSON.stringify(SMALL))
    const child = await startSimulatorProcess(file)
    expect(child.dnsAddress).toMatch(/^127\.0\.0\.1:\d+$/)
    const addresses = new Map([['mx.a.test', ['127.20.0.1']]])
    const talk = await Talk.with({ smtpPort: child.smtpPort, addresses }, 'mx.a.test')
    await talk.reply()
    await talk.say('HELO probe.test')
    await talk.say('MAIL FROM:<>')
    await talk.say('RCPT TO:<user1@a.test>')
    const { total } = await child.counters()
    expect(total.commands).toEqual({ HELO: 1, MAIL: 1, RCPT: 1 })
    expect(total.recipients).toEqual(new Map([['user1@a.test', 1]]))
    await child.reset()
    expect((await child.counters()).total.commands).toEqual({})
    talk.hangUp()
    await child.close()
    await child.close()
    await expect(child.counters()).rejects.toThrow(/has exited/)
  })

  test('reports why it could not start', async () => {
    await expect(startSimulatorProcess('/nowhere/demo.json')).rejects.toThrow(
      /Cannot read the scenario/,
    )
  })
})
