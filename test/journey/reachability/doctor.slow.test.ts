import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Simulator } from '../../../src/simulator/simulator.ts'
import { getStates, HEALTHY, runDoctor, startDoctorSimulator } from '../../support/doctor.ts'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startDoctorSimulator()
})
afterAll(() => simulator.close())

// These tests wait for a DNS server that does not exist.
describe.concurrent('ev doctor with an unreachable DNS server', () => {
  test('fails the DNS check and only warns about the checks that need DNS', async () => {
    const result = await runDoctor(simulator, [...HEALTHY, '--dns', '127.0.0.1:1', '--json'])
    expect(result.code).toBe(1)
    expect(getStates(result)).toMatchObject({
      dns: 'fail',
      'port-25': 'warn', // One of three servers was dialed, by its IP address: the port is open.
      address: 'ok',
      ptr: 'warn',
      'mail-from': 'warn',
      spf: 'warn',
      blocklists: 'warn',
      disk: 'ok',
    })
  })

  test('exits with 0 if there are only warnings', async () => {
    const result = await runDoctor(simulator, [
      ...HEALTHY,
      '--dns',
      `${simulator.dnsAddress},127.0.0.1:1`,
    ])
    expect(result.code).toBe(0)
    expect(result.stdout).toMatch(/\n! dns +127\.0\.0\.1:1 does not resolve names/)
    expect(result.stdout).toMatch(
      /\nNo failures, 1 warning\. This machine can verify addresses\.\n$/,
    )
  })
})
