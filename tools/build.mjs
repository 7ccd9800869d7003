// Builds dist/ from src/: compiles, then copies the data files that the code reads at run time.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const tsc = join(
  dirname(createRequire(import.meta.url).resolve('typescript/package.json')),
  'bin/tsc',
)
rmSync(join(root, 'dist'), { recursive: true, force: true })
const compiled = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
if (compiled.status !== 0) process.exit(compiled.status ?? 1)
cpSync(
  join(root, 'src/world/scenario/example.json'),
  join(root, 'dist/world/scenario/example.json'),
)
const lists = join(root, 'src/address/lists')
if (existsSync(lists)) cpSync(lists, join(root, 'dist/address/lists'), { recursive: true })
