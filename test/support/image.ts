import { type SpawnOptions, spawn } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import dockerIgnore from '@balena/dockerignore'
import { type Copy, DockerfileParser, type Env, type From, type Instruction } from 'dockerfile-ast'
import { onFileFinished } from './cleanup.ts'
import { ROOT, readDoc } from './markdown.ts'

/** The instructions of the Dockerfile, by stage. */
export type Stage = { readonly name: string; readonly instructions: readonly Instruction[] }

/** Returns the stages of a Dockerfile, in their order. */
export function readStages(text: string): Stage[] {
  const stages: { name: string; instructions: Instruction[] }[] = []
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const isFrom = instruction.getKeyword() === 'FROM'
    if (isFrom) stages.push({ name: (instruction as From).getBuildStage() ?? '', instructions: [] })
    stages.at(-1)?.instructions.push(instruction)
  }
  return stages
}

/** Returns the last value of an instruction, such as CMD; '' if there is none. */
export const lastArguments = ({ instructions }: Stage, keyword: string): string =>
  instructions.findLast(one => one.getKeyword() === keyword)?.getArgumentsContent() ?? ''

/** Returns the strings of an instruction in JSON form, such as `CMD ["serve"]`. */
export const jsonArguments = (stage: Stage, keyword: string): string[] =>
  JSON.parse(/\[.*\]$/.exec(lastArguments(stage, keyword))?.[0] ?? '[]')

export const environmentOf = ({ instructions }: Stage): Record<string, string> =>
  Object.fromEntries(
    instructions
      .filter(one => one.getKeyword() === 'ENV')
      .flatMap(one => (one as Env).getProperties())
      .map(property => [property.getName(), property.getValue() ?? '']),
  )

/** Sources and target of a COPY instruction. `from` is a stage; null for the build context. */
export function copyOf(instruction: Instruction) {
  const paths = instruction.getArguments().map(one => one.getValue())
  const from = (instruction as Copy).getFromFlag()?.getValue() ?? null
  return { from, sources: paths.slice(0, -1), target: paths.at(-1) as string }
}

/** Returns the files of the project that Docker would send to the build. */
export function contextFiles(): string[] {
  const ignored = dockerIgnore.default().add(readDoc('.dockerignore'))
  const skipped = ['node_modules', '.git', 'dist', 'coverage']
  return globSync('**/*', { cwd: ROOT, exclude: path => skipped.includes(basename(path)) })
    .filter(path => statSync(join(ROOT, path)).isFile())
    .filter(path => !ignored.ignores(path))
}

/** The last stage, built in a directory that stands for the root of the image. */
export type Image = {
  /** Starts a command of the image, as its user if this process is root. */
  start(command: readonly string[], environment?: Readonly<Record<string, string>>): Started
  /** Whether the image has a file. */
  has(path: string): boolean
  readJson(path: string): unknown
}

export type Started = {
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>
  /** Resolves when the output contains the text; rejects when the command ends without it. */
  printed(text: string): Promise<void>
  signal(name: NodeJS.Signals): void
}

/** Runs the instructions of all stages in order, each in a directory that stands for its root. */
export async function buildImage(text: string): Promise<Image> {
  // Outside the project, so that its node_modules cannot replace a missing package.
  const home = mkdtempSync('/var/tmp/ev-image-')
  onFileFinished(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }))
  chmodSync(home, 0o755)
  const context = join(home, 'context')
  for (const path of contextFiles()) cpSync(join(ROOT, path), join(context, path))
  const stages = readStages(text)
  const rootOf = (name: string) => join(home, `stage-${name}`)
  const sourceOf = (from: string | null) => (from === null ? context : rootOf(from))
  for (const stage of stages) await buildStage(stage, rootOf(stage.name), sourceOf)
  const last = stages.at(-1) as Stage
  return imageOf(last, rootOf(last.name))
}

async function buildStage(
  stage: Stage,
  root: string,
  sourceOf: (from: string | null) => string,
): Promise<void> {
  addBasePrograms(root)
  let folder = root
  for (const instruction of stage.instructions) {
    const given = instruction.getArgumentsContent() ?? ''
    switch (instruction.getKeyword()) {
      case 'WORKDIR':
        folder = join(root, given)
        mkdirSync(folder, { recursive: true })
        break
      case 'COPY':
        copyFiles(copyOf(instruction), sourceOf, folder)
        break
      case 'RUN': {
        const options = { cwd: folder, env: environmentIn(stage, root) }
        const { code, output } = await start(['sh', '-ec', inRoot(root, given)], options).ended
        if (code !== 0) throw new Error(`RUN ${given} exited with ${code}:\n${output}`)
      }
    }
  }
}

/** Adds what stages need of the base image: Node, and `chown` where only root may run it. */
function addBasePrograms(root: string): void {
  const programs = join(root, 'usr/local/bin')
  mkdirSync(programs, { recursive: true })
  copyFileSync(process.execPath, join(programs, 'node'))
  if (!isRoot) symlinkSync('/bin/true', join(programs, 'chown'))
}

const isRoot = process.getuid?.() === 0

function copyFiles(
  { from, sources, target }: ReturnType<typeof copyOf>,
  sourceOf: (from: string | null) => string,
  folder: string,
): void {
  for (const source of sources) {
    const path = join(sourceOf(from), source)
    // COPY puts a file into a target that ends with a slash, and the content of a folder into it.
    const isInto = target.endsWith('/') && statSync(path).isFile()
    cpSync(path, join(folder, target, isInto ? basename(source) : ''), {
      recursive: true,
      verbatimSymlinks: true,
    })
  }
}

function imageOf(stage: Stage, root: string): Image {
  const [uid, gid] = lastArguments(stage, 'USER').split(':').map(Number)
  return {
    has: path => existsSync(join(root, path)),
    readJson: path => JSON.parse(readFileSync(join(root, path), 'utf8')),
    start: (command, environment = {}) =>
      start(
        command.map(part => inRoot(root, part)),
        {
          cwd: join(root, lastArguments(stage, 'WORKDIR')),
          env: { ...environmentIn(stage, root), ...environment },
          ...(isRoot ? { uid, gid } : {}),
        },
      ),
  }
}

/** Returns a text with the absolute paths of the image below its root on this machine. */
const inRoot = (root: string, text: string) =>
  text.replace(/(?<![\w.])\/(?=(?:data|ev|usr\/local)\b)/g, `${root}/`)

/** npm takes the packages from its cache, which `npm ci` of the project has filled. */
const NPM = { npm_config_prefer_offline: 'true', npm_config_audit: 'false' }

function environmentIn(stage: Stage, root: string): NodeJS.ProcessEnv {
  const own = Object.entries(environmentOf(stage)).map(([name, value]) => [
    name,
    inRoot(root, value),
  ])
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(EV_|NODE_ENV$|npm_|VITEST)/.test(name),
  )
  const path = `${root}/usr/local/bin:${process.env.PATH}`
  return Object.fromEntries([...inherited, ...Object.entries(NPM), ['PATH', path], ...own])
}

function start([program, ...args]: readonly string[], options: SpawnOptions): Started {
  const child = spawn(program as string, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  onFileFinished(() => child.kill('SIGKILL'))
  let output = ''
  const { promise: ended, resolve, reject } = Promise.withResolvers<Awaited<Started['ended']>>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', text => {
      output += text
    })
  }
  child.on('error', reject)
  child.on('close', code => resolve({ code, output }))
  return {
    ended,
    printed: text =>
      new Promise((found, missing) => {
        const check = () => output.includes(text) && found()
        for (const stream of [child.stdout, child.stderr]) stream?.on('data', check)
        check()
        ended.then(() => missing(new Error(`ended without printing ${text}: ${output}`)), missing)
      }),
    signal: name => void child.kill(name),
  }
}
