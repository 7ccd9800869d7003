import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder, runEv } from '../support/cli.ts'

const LONG = 'a'.repeat(300)

test.each([
  [66, 'bulk loop', 'loop cannot be read: too many symbolic links'],
  [66, `bulk ${LONG} -o out.csv`, 'cannot be read: name too long'],
  [73, 'bulk list.csv -o loop', 'loop cannot be written: too many symbolic links'],
  [73, `bulk list.csv -o ${LONG}`, 'cannot be written: name too long'],
  [
    74,
    'bulk list.csv -o out.csv --data-dir loop',
    'loop/ev.sqlite cannot be used: too many symbolic links',
  ],
  [66, 'restore folder', 'folder is a folder, not a backup'],
  [66, 'restore missing', 'missing does not exist'],
  [74, 'restore loop', 'loop cannot be used: too many symbolic links'],
  [74, 'backup copy --data-dir loop', 'loop/ev.sqlite cannot be copied: too many symbolic links'],
  [
    78,
    'verify ann@a.test --config missing',
    '--config names missing, which cannot be read: no such file',
  ],
  [78, 'verify ann@a.test --config loop', 'loop, which cannot be read: too many symbolic links'],
  [64, 'bulk https:files.test/list.csv', 'It is not a URL, such as https://www.example.com/path'],
])(
  'exits with %i and names the path, not an internal error: ev %s',
  async (code, line, sentence) => {
    const home = emptyFolder()
    symlinkSync('loop', join(home, 'loop'))
    mkdirSync(join(home, 'folder'))
    writeFileSync(join(home, 'list.csv'), 'ann@a.test\n')
    const ran = await runEv(
      [...line.split(' '), ...(line.startsWith('bulk') ? ['--sandbox'] : [])],
      {
        home,
      },
    )
    expect(ran.stderr.replaceAll(/\s+/g, ' ')).toContain(sentence)
    expect([ran.code, ran.stderr.includes('Internal error')]).toEqual([code, false])
  },
)
