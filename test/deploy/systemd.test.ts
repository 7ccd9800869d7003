import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_CODES } from '../../src/cli/exit.ts'
import { STOP_MS_MAX as SERVE_STOP_MS_MAX } from '../../src/cli/serve/run-service.ts'
import { STOP_MS_MAX as WORKER_STOP_MS_MAX } from '../../src/cli/serve/run-worker.ts'
import { emptyFolder, runEv } from '../support/cli.ts'
import { unknownSettings } from '../support/manifest.ts'
import { readDoc } from '../support/markdown.ts'

const UNITS = [
  { path: 'deploy/ev.service', stopMsMax: SERVE_STOP_MS_MAX },
  { path: 'deploy/ev-worker.service', stopMsMax: WORKER_STOP_MS_MAX },
]

const analyze = (...args: string[]) =>
  spawnSync('systemd-analyze', args, { encoding: 'utf8', timeout: 60_000 })
/** The first version that rates the exposure of a file. */
const OFFLINE_SINCE = 250
const version = Number(/\d+/.exec(analyze('--version').stdout ?? '')?.[0] ?? 0)

/** Returns the values of a directive. */
const valuesOf = (unit: string, name: string) =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(match => match[1] ?? '')

describe.each(UNITS)('$path', ({ path, stopMsMax }) => {
  const unit = readDoc(path)

  test('uses existing settings', () => {
    const names = [...unit.matchAll(/\bEV_[A-Z_]+(?==)/g)].map(([name]) => name)
    expect(names.length).toBeGreaterThan(1)
    expect(unknownSettings(names)).toEqual([])
  })

  test('has time for a graceful shutdown', () => {
    expect(Number(valuesOf(unit, 'TimeoutStopSec')[0]) * 1_000).toBeGreaterThan(stopMsMax)
  })

  test('does not restart after wrong usage or invalid settings', () => {
    const codes = valuesOf(unit, 'RestartPreventExitStatus').join(' ').split(' ').map(Number)
    expect(codes).toEqual([EXIT_CODES.usage, EXIT_CODES.bad_config])
    expect(valuesOf(unit, 'Restart')).toEqual(['always'])
  })

  test('runs without root and capabilities', () => {
    expect(valuesOf(unit, 'DynamicUser')).toEqual(['yes'])
    expect(valuesOf(unit, 'CapabilityBoundingSet')).toEqual([''])
    expect(valuesOf(unit, 'ProtectSystem')).toEqual(['strict'])
  })

  test.runIf(version >= OFFLINE_SINCE)('is accepted by systemd, with a low exposure', () => {
    const folder = mkdtempSync(join(tmpdir(), 'ev-unit-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const copy = join(folder, basename(path))
    // systemd checks that the program exists.
    writeFileSync(copy, unit.replace('/usr/local/bin/ev', process.execPath))
    const { status, stderr } = analyze('verify', copy)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    // In tenths, of 10; an unprotected service has 9.6.
    const security = analyze('security', '--offline=true', '--threshold=20', copy)
    expect(security.status, security.stdout).toBe(0)
  })
})

describe('deploy/ev-backup.service', () => {
  const unit = readDoc('deploy/ev-backup.service')
  const service = readDoc('deploy/ev.service')

  test('uses existing settings and options, and the data and the secret of the service', async () => {
    const names = [...unit.matchAll(/\bEV_[A-Z_]+(?==)/g)].map(([name]) => name)
    expect(unknownSettings(names)).toEqual([])
    const { stdout } = await runEv(['backup', '--help'], { home: emptyFolder() })
    const [command = ''] = valuesOf(unit, 'ExecStart')
    for (const [flag] of command.matchAll(/--[a-z-]+/g)) expect(stdout).toContain(`  ${flag} `)
    for (const shared of ['EV_DATA_DIR=%S/ev', 'EV_SECRET_FILE=%d/secret']) {
      expect([unit.includes(shared), service.includes(shared)]).toEqual([true, true])
    }
    // The user of ev.service, which has the name of the unit.
    expect([valuesOf(unit, 'User'), valuesOf(unit, 'DynamicUser')]).toEqual([['ev'], ['yes']])
  })

  test('has no passphrase in its command line', () => {
    expect(valuesOf(unit, 'ExecStart')[0]).toContain('--passphrase-file "%d/passphrase"')
  })

  test.runIf(version >= OFFLINE_SINCE)('is accepted by systemd, with its timer', () => {
    const folder = mkdtempSync(join(tmpdir(), 'ev-unit-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const copies = ['ev-backup.service', 'ev-backup.timer'].map(name => {
      writeFileSync(join(folder, name), readDoc(`deploy/${name}`))
      return join(folder, name)
    })
    const { status, stderr } = analyze('verify', ...copies)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const security = analyze('security', '--offline=true', '--threshold=20', copies[0] as string)
    expect(security.status, security.stdout).toBe(0)
  })
})
