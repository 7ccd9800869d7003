type Omitted<Part> = {
  [Name in keyof Part as undefined extends Part[Name] ? never : Name]: Part[Name]
} & {
  [Name in keyof Part as undefined extends Part[Name] ? Name : never]?: Exclude<
    Part[Name],
    undefined
  >
}

/** Returns an object without its undefined properties, for types in which a property may be missing. */
export const omitUndefined = <Part extends object>(part: Part): Omitted<Part> =>
  Object.fromEntries(
    Object.entries(part).filter(([, value]) => value !== undefined),
  ) as Omitted<Part>
