/** The database URLs of a text: one, or several separated by commas, the nodes of one cluster. */
export const nodesOf = (url: string): string[] => url.split(/,(?=mysql:\/\/)/)

/** Whether a text is one or several URLs. */
export const isDatabaseUrl = (url: string): boolean => nodesOf(url).every((node) => URL.canParse(node))

/** Its passwords, decoded, each once. */
export const passwordsOf = (url: string): string[] => [
  ...new Set(nodesOf(url).flatMap((node) => decodeURIComponent(new URL(node).password) || [])),
]

/** The same with this password in every node's URL; '' removes them. */
export const withPassword = (url: string, password: string): string =>
  nodesOf(url)
    .map((node) => {
      const parsed = new URL(node)
      parsed.password = encodeURIComponent(password)
      return parsed.href
    })
    .join()

/** The hosts that are reached over TCP, each once; an IPv6 address without its brackets. */
export const hostsOf = (url: string): string[] => [
  ...new Set(
    nodesOf(url)
      .map((node) => new URL(node))
      .filter(({ searchParams }) => !searchParams.has('socketPath'))
      .map(({ hostname }) => hostname.replace(/^\[|\]$/g, '')),
  ),
]
