"""Translation on the machines of a Ray cluster (extra `cluster`).

`attendo translate MODEL -i 'mono/*.gz' -o out/ --cluster auto` translates files; `translate` is the
same as a map over a dataset of Ray Data, for pipelines of your own:

    import ray
    from attendo import cluster

    texts = ray.data.read_parquet("s3://corpora/mono")
    cluster.translate(texts, "runs/ko-en", column="text").write_parquet("s3://corpora/translated")
"""

from attendo.cluster.dataset import translate
from attendo.cluster.job import ClusterJob, ClusterTranslation, JobProgress

__all__ = ["ClusterJob", "ClusterTranslation", "JobProgress", "translate"]
