import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startScenarioProcess } from '../../src/simulator/simulator-process.ts'
import { onFileFinished } from '../support/cleanup.ts'
import { emptyFolder, runEv, simulatorFlags } from '../support/ev-process.ts'
import { addressesOf, reasonOf, scenarioOf } from '../support/list-simulator.ts'

const LIST = { rows: 1_500, domains: 300 }
/** More than the process may open: 64 files fit about 30 connections. */
const FILES = 64

/** Returns a command that runs Node with a limit of open files. */
function limitedNode(home: string): string {
  const path = join(home, 'limited-node')
  writeFileSync(path, `#!/bin/sh\nulimit -n ${FILES}\nexec '${process.execPath}' "$@"\n`)
  chmodSync(path, 0o755)
  return path
}

test(`a list has all its results with ${FILES} open files, and says how many connections fit`, async () => {
  const simulator = await startScenarioProcess(scenarioOf(LIST, 5))
  onFileFinished(() => simulator.close())
  const home = emptyFolder()
  const input = join(home, 'list.csv')
  const output = join(home, 'out.ndjson')
  writeFileSync(input, `email\n${addressesOf(LIST).join('\n')}\n`)
  const ran = await runEv(
    [
      ...['bulk', input, '-o', output, '--format', 'ndjson', '--data-dir', join(home, 'data')],
      ...simulatorFlags(simulator),
      ...['--dns-check-names', 'd0.test'],
    ],
    { home, node: limitedNode(home) },
  )
  expect(ran).toMatchObject({ code: 0 })
  expect(ran.stderr).toMatch(/the limit of open files is 64, so ev opens at most\s+12 connections/)
  const reasons = readFileSync(output, 'utf8')
    .trim()
    .split('\n')
    .map(line => (JSON.parse(line) as { result: { reason: string } }).result.reason)
  expect(reasons).toEqual(Array.from({ length: LIST.rows }, (_, row) => reasonOf(LIST, row)))
})
