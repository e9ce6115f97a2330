/** The name of a job that every site does for itself. @param site of the configuration: it has no blank */
export const jobOfSite = (name: string, site: string): string => `${name} of site ${site}`
