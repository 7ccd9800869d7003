import { globSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import dockerIgnore from '@balena/dockerignore'
import { type Copy, DockerfileParser, type Env, type From, type Instruction } from 'dockerfile-ast'
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
