import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { rowsIn } from '../../support/csv.ts'

const hasPipes = spawnSync('mkfifo', ['--version']).status === 0

const bulk = (home: string, list: string) =>
  runEv(['bulk', list, '-o', 'out.csv', '--sandbox', '--data-dir', 'data'], { home, offline: true })

test.runIf(hasPipes)('a named pipe is stored like stdin, until the list is finished', async () => {
  const home = emptyFolder()
  spawnSync('mkfifo', [join(home, 'pipe')])
  const written = writeFile(join(home, 'pipe'), 'email\nvalid1@x.example\n')
  expect(await bulk(home, 'pipe')).toMatchObject({ code: 0 })
  await written
  expect(rowsIn(join(home, 'out.csv'))).toMatchObject([{ email: 'valid1@x.example' }])
  expect(readdirSync(join(home, 'data/stdin'))).toEqual([])
})

test('an empty name is rejected', async () => {
  expect(await bulk(emptyFolder(), '')).toMatchObject({ code: 64 })
})

test('a folder is rejected', async () => {
  const home = emptyFolder()
  mkdirSync(join(home, 'lists'))
  const { code, stderr } = await bulk(home, 'lists')
  expect([code, stderr]).toEqual([66, expect.stringMatching(/is a folder, not a list/)])
})
